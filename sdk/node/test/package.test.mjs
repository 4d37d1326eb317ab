import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFileSync } from 'node:fs';
import { requestFrame, withWorker } from './support/peer.mjs';
import { VERSION } from '../src/version.mjs';

const INDEX = new URL('../index.mjs', import.meta.url).href;

test('the package gives a worker\'s own objects to its application', () => withWorker(
  `import { Response as Own, sendFile, upgradeWebSocket, version } from '${INDEX}';
  export default { fetch() {
    return Own.json([Own === onehop.Response, sendFile === onehop.sendFile, upgradeWebSocket === onehop.upgradeWebSocket, version]);
  } };`, {}, async (peer, lane) => {
    lane.send(requestFrame(0, 0));
    assert.deepEqual(JSON.parse((await lane.answer(0)).body), [true, true, true, VERSION]);
  },
));

test('outside of a worker Response is the platform\'s, and what needs the server says so', async () => {
  const outside = await import(INDEX);
  assert.equal(outside.Response, globalThis.Response);
  assert.equal(outside.version, null);
  assert.throws(() => outside.upgradeWebSocket(), /upgradeWebSocket works in a worker of onehop only/);
  assert.throws(() => outside.sendFile('x'), /onehop app FILE/);
});

test('the versions of package and library are one', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(version, VERSION);
});
