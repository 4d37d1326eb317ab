export function GET() {
  const body = new ReadableStream({
    async start(controller) {
      for (const word of ["one\n", "two\n", "three\n"]) {
        controller.enqueue(new TextEncoder().encode(word));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      controller.close();
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/plain" } });
}
