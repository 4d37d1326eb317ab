/**
 * The example's API. A handler gets a Request, as in a browser or any other runtime of today, and returns a
 * Response. Nothing is imported: whatever runs `fetch` handlers runs this.
 */

/** Longest text of a note, in characters. */
const NOTE_CHARACTERS_MAX = 200;
/** Notes that are kept; the oldest make room. They live in this process: with `workers auto`, each has its own. */
const NOTES_MAX = 100;
/** How often the clock ticks. */
const TICK_MILLISECONDS = 1000;

const notes = [{ id: 1, text: 'Written on the server, read by the page.' }];
let lastId = notes.length;

export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    switch (`${request.method} ${pathname}`) {
      case 'GET /api/notes':
        return Response.json(notes);
      case 'POST /api/notes':
        return addNote(request);
      case 'GET /api/count':
        return count(Number(searchParams.get('to') ?? 10));
      case 'GET /api/clock':
        return clock(request.signal);
      case 'GET /api/me':
        return Response.json({ client: ctx.client, requestId: ctx.requestId, worker: process.pid });
      default:
        return Response.json({ error: `there is nothing at ${pathname}` }, { status: 404 });
    }
  },
};

async function addNote(request) {
  let text;
  try {
    ({ text } = await request.json());
  } catch {
    return Response.json({ error: 'send JSON: {"text": "…"}' }, { status: 400 });
  }
  if (typeof text !== 'string' || text.trim() === '' || text.length > NOTE_CHARACTERS_MAX) {
    const error = `a note has from 1 to ${NOTE_CHARACTERS_MAX} characters`;
    return Response.json({ error }, { status: 422 });
  }
  const note = { id: (lastId += 1), text };
  notes.push(note);
  if (notes.length > NOTES_MAX) notes.shift();
  return Response.json(note, { status: 201 });
}

/** A streamed answer: a line is made when the client has room for it, whatever it counts to. */
function count(to) {
  if (!Number.isSafeInteger(to) || to < 1) {
    return Response.json({ error: 'to must be a whole number from 1' }, { status: 422 });
  }
  let number = 0;
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    pull(controller) {
      number += 1;
      controller.enqueue(encoder.encode(`${number}\n`));
      if (number === to) controller.close();
    },
  });
  return new Response(body, { headers: { 'Content-Type': 'text/plain;charset=UTF-8' } });
}

/** Server-sent events until the client goes away. */
function clock(signal) {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    start(controller) {
      const tick = () => controller.enqueue(encoder.encode(`data: ${new Date().toISOString()}\n\n`));
      const timer = setInterval(tick, TICK_MILLISECONDS);
      signal.addEventListener('abort', () => clearInterval(timer));
      tick();
    },
  });
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' },
  });
}
