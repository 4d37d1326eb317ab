// A Hono application answers requests of the worker's library as it answers those of the platform: same status, fields
// and bytes, whichever Response is the global one. No server takes part.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toAnswer } from '../../sdk/node/src/fetch/answer.mjs';
import { install } from '../../sdk/node/src/fetch/install.mjs';
import { INTERNED } from '../../sdk/node/src/fetch/names.mjs';
import { createRequest } from '../../sdk/node/src/fetch/request.mjs';
import { headOf, sourceOf } from '../../sdk/node/test/fetch/frames.mjs';
import { buildApp, buildRequests } from './hono-app.mjs';

const PlatformRequest = globalThis.Request;
const PlatformResponse = globalThis.Response;

test('a Hono application answers our requests as it answers those of the platform', async (context) => {
  const asked = await buildRequests();
  const expected = await answerAll(asked, platformRequest);
  assert.equal(expected.filter(({ failure }) => failure !== undefined).length, 0, 'every request has an answer on the platform');
  const refused = expected.filter(({ status }) => status === 404 || status === 500);
  assert.ok(refused.length * 5 < expected.length, 'most of what is asked is there');
  install({ platformResponse: true });
  compare(asked, expected, await answerAll(asked, ourRequest), 'our Request, the platform\'s Response');
  install();
  compare(asked, expected, await answerAll(asked, ourRequest), 'our Request and Response');
  compare(asked, expected, await answerAll(asked, platformRequest), 'the platform\'s Request, our Response');
  context.diagnostic(`${asked.length} requests, three ways`);
});

/**
 * @param {any[]} asked
 * @param {any[]} expected
 * @param {any[]} given
 * @param {string} way
 */
function compare(asked, expected, given, way) {
  for (const [place, one] of asked.entries()) {
    // On Bun a text has no type before the server answers, so Hono compresses it only where the Response is ours.
    if (process.versions.bun && one.target.startsWith('/compress/')) continue;
    const name = `${way}: ${one.method} ${one.target} ${one.streaming ? 'in pieces ' : ''}${JSON.stringify(one.fields.slice(6))}`;
    assert.deepEqual(given[place], expected[place], name);
  }
}

/**
 * @param {any[]} asked
 * @param {(one: any) => Request} make
 */
async function answerAll(asked, make) {
  const app = buildApp();
  const answers = [];
  for (const one of asked) {
    try {
      const answer = toAnswer(await app.fetch(make(one), {}, { waitUntil() {}, passThroughOnException() {}, props: {} }));
      const bytes = answer.body === null ? '' : Buffer.from(await new PlatformResponse(answer.body).arrayBuffer()).toString('latin1');
      answers.push({ status: answer.status, fields: fieldsOf(answer.fields), bytes });
    } catch (failure) {
      answers.push({ failure: String(failure) });
    }
  }
  return answers;
}

/**
 * The fields as a client would understand them: in any order, values of one name joined.
 * @param {string} block
 */
function fieldsOf(block) {
  const fields = new Headers();
  for (const record of block.split('\n').slice(0, -1)) {
    const first = record.charCodeAt(0);
    const colon = first >= 0xc0 ? 0 : record.indexOf(':');
    fields.append(colon === 0 ? INTERNED[first & 0x3f] : record.slice(0, colon), record.slice(colon + 1));
  }
  // Bun's own responses get the type of a text only from Bun's server.
  if (process.versions.bun && fields.get('content-type') === 'text/plain;charset=UTF-8') fields.delete('content-type');
  return [...fields];
}

/** @param {any} one */
function ourRequest(one) {
  return createRequest(headOf(one), sourceOf(one));
}

/** @param {any} one */
function platformRequest({ method, target, fields, body, streaming }) {
  const bytes = body === undefined ? null : new TextEncoder().encode(body);
  /** @type {any} */
  const init = { method, headers: fields };
  if (bytes?.length) init.body = streaming ? new PlatformResponse(bytes).body : bytes;
  if (streaming) init.duplex = 'half';
  return new PlatformRequest(`http://example.com${target}`, init);
}
