export const dynamic = "force-dynamic";

const EVENTS = 5;
const EVENT_MS = 20;

export function GET() {
  let timer;
  let count = 0;
  const body = new ReadableStream({
    start(controller) {
      timer = setInterval(() => {
        count += 1;
        controller.enqueue(new TextEncoder().encode(`data: ${count}\n\n`));
        if (count < EVENTS) return;
        clearInterval(timer);
        controller.close();
      }, EVENT_MS);
    },
    cancel() {
      clearInterval(timer);
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-store" } });
}
