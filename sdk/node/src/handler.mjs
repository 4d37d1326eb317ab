/**
 * Calls the application's handler for one exchange, and takes what it answers.
 */
import { Context } from './context.mjs';
import { createRequest } from './fetch/request.mjs';
import { isolated } from './isolate.mjs';

/**
 * @param {{self: object|undefined, handle: Function}} app
 * @param {Readonly<Record<string, string>>} env
 * @returns {(exchange: import('./exchange.mjs').Exchange) => void}
 */
export function caller({ self, handle }, env) {
  return (exchange) => {
    let result;
    try {
      result = isolated(handle, self, createRequest(exchange.head, exchange), env, new Context(exchange));
    } catch (error) {
      exchange.fail(error);
      return;
    }
    if (result instanceof Promise || typeof result?.then === 'function') {
      answerLater(exchange, result);
    } else {
      exchange.answer(result);
    }
  };
}

async function answerLater(exchange, promise) {
  let response;
  try {
    response = await promise;
  } catch (error) {
    exchange.fail(error);
    return;
  }
  exchange.answer(response);
}
