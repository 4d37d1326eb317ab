/**
 * A reporter of Node's test runner: tells the runner, in the same process, of each test with the names of those around
 * it, and how many at the top are open.
 */
export default async function* tell(source) {
  const names = [];
  let open = 0;
  for await (const { type, data } of source) {
    const runner = globalThis[Symbol.for('onehop.suites')];
    if (type === 'test:enqueue' && data.nesting === 0) runner.open(open += 1);
    if (type === 'test:start') {
      names.length = data.nesting;
      names.push(data.name);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const title = [...names.slice(0, data.nesting), data.name].join(' > ');
    names.length = data.nesting;
    if (data.details?.type !== 'suite') runner.note(lineOf(type, title, data));
    if (data.nesting === 0) runner.open(open -= 1);
    yield '';
  }
}

function lineOf(type, title, { skip, todo, details }) {
  const isSkipped = skip !== undefined || todo !== undefined;
  const error = details?.error;
  return {
    title,
    state: isSkipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed',
    error: error && String(error.cause?.stack ?? error.cause ?? error.stack).slice(0, 2_000),
  };
}
