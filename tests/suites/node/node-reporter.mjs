/** A reporter of Node's test runner: one line for each test, with the names of those around it. */
export default async function* lines(source) {
  const names = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names.length = data.nesting;
      names.push(data.name);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const around = names.slice(0, data.nesting);
    names.length = data.nesting;
    const title = [...around, data.name].join(' > ');
    if (data.details?.type === 'suite') continue;
    const skipped = data.skip !== undefined || data.todo !== undefined;
    const { error } = data.details ?? {};
    const state = skipped ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    yield `${JSON.stringify({ title, state, error: error && String(error.cause?.stack ?? error.cause ?? error.stack).slice(0, 2_000) })}\n`;
  }
}
