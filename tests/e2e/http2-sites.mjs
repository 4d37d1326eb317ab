// What the tests of HTTP/2 start: a site in clear text or over TLS with files, a handler, and an application with `ws`.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startOnehop, workFolder } from "./program.mjs";

const HANDLER = `
export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/whole")) return new Response(await request.arrayBuffer());
    if (request.method === "POST") return new Response(request.body, { headers: { "X-Length": request.headers.get("content-length") ?? "none" } });
    if (url.pathname.endsWith("/events")) {
      const events = new ReadableStream({
        async start(controller) {
          for (let count = 0; count < 5; count += 1) controller.enqueue(new TextEncoder().encode(\`data: \${count}\\n\\n\`));
          controller.close();
        },
      });
      return new Response(events, { headers: { "Content-Type": "text/event-stream" } });
    }
    return Response.json({ url: request.url, method: request.method, cookie: request.headers.get("cookie") });
  },
};
`;

/** As it is written for Node.js alone: nothing in it knows of onehop or HTTP/2. */
const SOCKETS = `
import { createServer } from "node:http";
import { WebSocketServer } from ${JSON.stringify(import.meta.resolve("ws"))};

const server = createServer((request, response) => response.end("plain"));
const sockets = new WebSocketServer({ server, handleProtocols: (offered) => [...offered][0] ?? false });
sockets.on("connection", (socket, request) => {
  socket.send(JSON.stringify({ url: request.url, cookie: request.headers.cookie ?? null, protocol: socket.protocol }));
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.listen(process.env.PORT ?? 0);
`;

const PAGE = `<!doctype html><title>a page</title><link rel="stylesheet" href="/style.css"><script type="module" src="/script.js"></script><h1>hello</h1>`;

/** Length of `large.bin`. */
export const LARGE = 5_000_000;

/** Starts a server; `scheme` is that of its one site. Gives its `origin`, and the file of the root to be trusted. */
export async function startSite(context, scheme, globals = "") {
  const folder = workFolder(context);
  mkdirSync(join(folder, "site"));
  writeFileSync(join(folder, "site/index.html"), PAGE);
  writeFileSync(join(folder, "site/style.css"), "h1 { color: green }\n".repeat(100));
  writeFileSync(join(folder, "site/script.js"), "document.title = 'it runs';\n");
  writeFileSync(join(folder, "site/large.bin"), Buffer.alloc(LARGE, "0123456789abcdef"));
  writeFileSync(join(folder, "handler.mjs"), HANDLER);
  writeFileSync(join(folder, "sockets.mjs"), SOCKETS);
  const data = join(folder, "data");
  const text = `{
	admin off
	auto_https disable_redirects
	data_dir ${data}
	${globals}
}
${scheme}://localhost:0 {
	bind 127.0.0.1
	log {
		output file ${join(folder, "access.log")}
	}
	encode gzip
	app /api/* ./handler.mjs
	app /socket* ./sockets.mjs
	root * ./site
	file_server
}
`;
  const running = await startOnehop(context, { folder, text });
  await running.event((event) => event.event === "app_ready" && event.app?.includes("sockets"));
  running.origin = `${scheme}://localhost:${running.port}`;
  running.root = join(data, "tls/pki/authorities/local/root.crt");
  running.log = join(folder, "access.log");
  running.ca = scheme === "https" ? readFileSync(running.root) : undefined;
  return running;
}
