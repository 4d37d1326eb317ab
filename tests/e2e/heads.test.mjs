// What a request's head may say on its way to an application: its method, who the client is, which fields are about
// the connection. And where `redir` leads.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { startOnehop, workFolder } from "./program.mjs";

const FETCH = `
const shown = (request) => ({ method: request.method, copied: new Request(request).method, fields: [...request.headers] });
export default { fetch: (request) => Response.json(shown(request)) };
`;
const NODE = `
const shown = ({ method, rawHeaders }) => {
  const fields = [];
  for (let at = 0; at < rawHeaders.length; at += 2) fields.push([rawHeaders[at].toLowerCase(), rawHeaders[at + 1]]);
  return JSON.stringify({ method, fields });
};
require("node:http").createServer((request, response) => response.end(shown(request))).listen(0);
`;

/** Answers each request with its head, whatever its method is: what Node's own server would refuse too. */
async function anyServer(context) {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = "";
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      for (let end; (end = received.indexOf("\r\n\r\n")) >= 0; received = received.slice(end + 4)) {
        const [line, ...lines] = received.slice(0, end).split("\r\n");
        const fields = lines.map((text) => [text.split(":")[0].toLowerCase(), text.slice(text.indexOf(":") + 1).trim()]);
        const body = JSON.stringify({ method: line.split(" ")[0], fields });
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      }
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server.address().port;
}

/** What may answer: a directive that takes options, made in a folder. */
const KINDS = {
  "a fetch handler": (_context, folder) => {
    writeFileSync(join(folder, "handler.mjs"), FETCH);
    return "app ./handler.mjs";
  },
  "an unmodified node:http application": (_context, folder) => {
    writeFileSync(join(folder, "server.cjs"), NODE);
    return "app ./server.cjs";
  },
  "a program": async (context) => `app {\n\t\t\tsupervise off 127.0.0.1:${await anyServer(context)}`,
  "a proxied server": async (context) => `reverse_proxy 127.0.0.1:${await anyServer(context)}`,
};

async function start(context, kind, routes, options = "") {
  const folder = workFolder(context);
  let directive = await KINDS[kind](context, folder);
  if (!directive.includes("{")) directive += " {";
  const text = `{\n\tadmin off\n}\nhttp://localhost:0 {\n${routes.replaceAll("APP", `${directive}\n\t\t\t${options}\n\t\t}`)}\n}\n`;
  return client(context, await startOnehop(context, { folder, text }));
}

function client(context, { port }) {
  let connection;
  context.after(() => connection?.close());
  return async (target, options) => {
    if (!connection || connection.isOver) connection = await Connection.open(port);
    const { status, body, field } = await connection.request(target, options);
    return { status, field, body: body.toString(), seen: status === 200 && body[0] === 0x7b ? JSON.parse(body) : null };
  };
}

/** Methods that no server registers, and spellings of those that all do. */
const ODD = ["post", "Post", "get", "GeT", "delete", "patch", "options", "BREW", "PRI", "GETT", "M_SEARCH", "m-search", "X!#$%&'*+-.^_`|~9"];

for (const kind of Object.keys(KINDS)) {
  test(`${kind} gets the method that matchers saw, or none`, async (context) => {
    const ask = await start(context, kind, "\t@paying method POST\n\thandle @paying {\n\t\trespond paid 402\n\t}\n\thandle {\n\t\tAPP\n\t}");
    assert.equal((await ask("/pay", { method: "POST" })).status, 402);
    for (const method of ODD) {
      const { status, seen } = await ask("/pay", { method });
      if (kind === "an unmodified node:http application") {
        assert.equal(status, 400, method);
        continue;
      }
      assert.equal(status, 200, method);
      assert.equal(seen.method, method);
      if (kind === "a fetch handler") assert.equal(seen.copied, method, "a copy of the request");
    }
  });

  test(`${kind} is told by a trusted proxy who the client is, whatever Connection names`, async (context) => {
    const told = { "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example", "X-Forwarded-Port": "8443", "X-Forwarded-Prefix": "/shop", Forwarded: "for=203.0.113.9", "X-Real-IP": "203.0.113.9" };
    const names = Object.keys(told).join(", ");
    const fields = { ...told, "X-Named": "1", Connection: `keep-alive, ${names.toUpperCase()}, x-named` };
    const seenBy = async (options) => new Map((await (await start(context, kind, "\thandle {\n\t\tAPP\n\t}", options))("/", { fields })).seen.fields);
    const seen = await seenBy("trusted_proxies 127.0.0.1");
    for (const [name, value] of Object.entries(told)) {
      assert.ok(seen.get(name.toLowerCase())?.startsWith(value), `${name}: ${seen.get(name.toLowerCase())}`);
    }
    assert.equal(seen.get("x-named"), undefined);
    const unseen = await seenBy("");
    assert.ok(![...unseen.values()].some((value) => value.includes("203.0.113.9")), "from nobody else");
  });

  test(`${kind} gets no field that a CGI environment takes for one of the server's`, async (context) => {
    for (const options of ["", "trusted_proxies 127.0.0.1"]) {
      const ask = await start(context, kind, "\thandle {\n\t\tAPP\n\t}", options);
      for (const name of ["X.Real.IP", "X_Real_IP", "x.forwarded.for", "X-Forwarded.For", "X.Forwarded_Proto", "X.Forwarded-Host", "X~Real!IP"]) {
        const { status, seen } = await ask("/", { fields: { [name]: "6.6.6.6", "X-Other": "1" } });
        assert.equal(status, 200, name);
        assert.ok(!JSON.stringify(seen.fields).includes("6.6.6.6"), `${name} with ${options || "no option"}`);
        assert.equal(new Map(seen.fields).get("x-other"), "1");
      }
    }
  });
}

test("a node:http application is asked with the methods that Node alone takes", async (context) => {
  const ask = await start(context, "an unmodified node:http application", "\tAPP");
  const alone = http.createServer((_request, response) => response.end());
  await once(alone.listen(0, "127.0.0.1"), "listening");
  context.after(() => (alone.closeAllConnections(), alone.close()));
  for (const method of [...http.METHODS, ...ODD].filter((method) => method !== "CONNECT")) {
    const connection = await Connection.open(alone.address().port);
    // Node refuses without a length, so that the connection's end is the answer's.
    const { status } = await connection.request("/", { method }).catch(() => ({ status: 400 }));
    connection.close();
    assert.equal((await ask("/", { method })).status, status, method);
  }
});

test("the walk through X-Forwarded-For ends at a member that is no address", async (context) => {
  const folder = workFolder(context);
  const text = `{
	admin off
	servers {
		trusted_proxies static 127.0.0.1 10.0.0.0/8
	}
}
http://localhost:0 {
	rate_limit {
		zone clients {
			events 1
			window 1h
			key {client_ip}
		}
	}
	respond ok
}
`;
  const ask = client(context, await startOnehop(context, { folder, text }));
  const status = async (list) => (await ask("/", { fields: { "X-Forwarded-For": list, Connection: "X-Forwarded-For" } })).status;
  assert.equal(await status("203.0.113.1"), 200);
  assert.equal(await status("203.0.113.1"), 429, "the client that the proxy names");
  assert.equal(await status("203.0.113.2, , 10.0.0.1"), 200, "an empty member is none");
  assert.equal(await status("203.0.113.2, 10.0.0.2"), 429);
  // Behind a member that is none anything may stand: they all count as the connection's other end.
  assert.equal(await status("203.0.113.3, unknown, 10.0.0.1"), 200);
  for (const list of ["203.0.113.4, unknown, 10.0.0.1", "203.0.113.5, _hidden", "203.0.113.6, 300.1.1.1", "nobody"]) {
    assert.equal(await status(list), 429, list);
  }
});

test("a head with more connection options than make sense is refused at once", async (context) => {
  const ask = await start(context, "a proxied server", "\tAPP");
  const options = (count) => ({ Connection: Array.from({ length: count }, (_, number) => `x-${number}`).join(", ") });
  assert.equal((await ask("/", { fields: { ...options(32), "X-31": "1" } })).seen.fields.some(([name]) => name === "x-31"), false);
  assert.equal((await ask("/", { fields: options(33) })).status, 431);
  assert.equal((await ask("/", { fields: { Connection: "a,".repeat(15_000) } })).status, 431);
  assert.equal((await ask("/", { fields: { Connection: `${",".repeat(15_000)}keep-alive` } })).status, 200);
});

test("a redirect to a path stays on its host", async (context) => {
  const folder = workFolder(context);
  const text = `{
	admin off
}
http://localhost:0 {
	redir /to/* /{query.next}
	redir /cdn //cdn.example/x
	redir /page/* {query.next} html
	redir {path}
}
`;
  const ask = client(context, await startOnehop(context, { folder, text }));
  for (const [target, location] of [
    ["//evil.com", "/evil.com"],
    ["///evil.com/a//b", "/evil.com/a//b"],
    ["/%09/evil.com", "/evil.com"],
    ["/%0a/evil.com", "/evil.com"],
    ["/%2fevil.com", "/evil.com"],
    ["/x/..//evil.com", "/evil.com"],
    ["/a//b", "/a//b"],
    ["/to/x?next=/evil.com", "/evil.com"],
    ["/to/x?next=%5cevil.com", "/evil.com"],
    ["/to/x?next=a/b", "/a/b"],
    ["/cdn", "//cdn.example/x"],
  ]) {
    const answer = await ask(target);
    assert.equal(answer.field("location"), location, target);
    assert.equal(answer.status, 302, target);
  }
  assert.ok((await ask("/page/x?next=//evil.com")).body.includes('URL=\'/evil.com\''));
});
