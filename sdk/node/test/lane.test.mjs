import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dataFrame, requestFrame, withWorker } from './support/peer.mjs';

const ECHO = `export default {
  async fetch(request) {
    return new Response(request.method + ' ' + new URL(request.url).pathname + ' ' + await request.text());
  },
};`;

test('a GET is answered in one frame', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 0, { target: '/hello' }));
  const answer = await lane.answer(0);
  assert.equal(answer.status, 200);
  assert.equal(answer.body.toString(), 'GET /hello ');
}));

test('a POST is answered whose body came with its head, or behind it', () => withWorker(ECHO, {}, async (peer, lane) => {
  lane.send(requestFrame(0, 7, { method: 'POST', body: 'grüße' }));
  assert.equal((await lane.answer(0)).body.toString(), 'POST / grüße');
  lane.send(requestFrame(0, 8, { method: 'POST', body: 'one ', end: false }), dataFrame(0, 8, 'two'), dataFrame(0, 8, '', true));
  assert.equal((await lane.answer(0)).body.toString(), 'POST / one two');
}));
