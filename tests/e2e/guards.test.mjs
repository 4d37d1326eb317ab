// Guards in front of applications: whatever a client writes, no request passes `handle /admin/*` and is below /admin
// for whoever answers it. The same for rate limits, rewritten paths and lists of what is allowed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, posix } from "node:path";
import { test } from "node:test";
import { Connection } from "./connection.mjs";
import { startOnehop, workFolder } from "./program.mjs";

const FETCH = "export default { fetch: (request) => Response.json({ url: request.url, method: request.method }) };\n";
const NODE = `
const answer = (request, response) => response.end(JSON.stringify({ url: request.url, method: request.method }));
require("node:http").createServer(answer).listen(process.env.PORT ?? 0);
`;

/** What may stand behind a guard: a directive, made in a folder. */
const KINDS = {
  "a fetch handler": async (_context, folder) => {
    writeFileSync(join(folder, "handler.mjs"), FETCH);
    return "app ./handler.mjs";
  },
  "an unmodified node:http application": async (_context, folder) => {
    writeFileSync(join(folder, "server.cjs"), NODE);
    return "app ./server.cjs";
  },
  "a program": async (_context, folder) => {
    writeFileSync(join(folder, "server.cjs"), NODE);
    return "app {\n\t\t\tcommand node server.cjs\n\t\t}";
  },
  "a proxied server": async (context) => {
    const server = createServer((request, response) => {
      response.end(JSON.stringify({ url: request.url, method: request.method }));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    context.after(() => (server.closeAllConnections(), server.close()));
    return `reverse_proxy 127.0.0.1:${server.address().port}`;
  },
};

/** A site with these routes, in which `APP` stands for what answers, and a client of it. */
async function start(context, kind, routes) {
  const folder = workFolder(context);
  const directive = await KINDS[kind](context, folder);
  const text = `{\n\tadmin off\n}\nhttp://localhost:0 {\n${routes.replaceAll("APP", directive)}\n}\n`;
  const onehop = await startOnehop(context, { folder, text });
  let connection;
  context.after(() => connection?.close());
  return async (target, options) => {
    if (!connection || connection.isOver) connection = await Connection.open(onehop.port);
    const { status, body, field } = await connection.request(target, options);
    return { status, field, seen: status === 200 ? JSON.parse(body) : null };
  };
}

/** The paths that a server may take a request for: as WHATWG's URL has it, as it is, decoded once. */
function readings(url) {
  const raw = url.replace(/^https?:\/\/[^/?]*/, "").split("?")[0];
  const read = [URL.canParse(url, "http://x") ? new URL(url, "http://x").pathname : raw, raw];
  try {
    read.push(posix.normalize(decodeURIComponent(raw)));
  } catch {
    // Escapes that are no UTF-8: nobody decodes them to something below /admin.
  }
  return read.map((path) => path.toLowerCase());
}

const LEADS = [
  "/", "//", "///", "/./", "/../", "/.//", "/x/../", "/a/b/../../", "/x/..//", "/.\\", "/x/..\\", "/..\\", "/\\", "/%2e/", "/%2e\\",
  "/%2E%2e/", "/x/%2e%2e/", "/x/.%2E/", "/x/%2e./", "/%2f", "/..%2f", "/x%2f..%2f", "/x/..%2f", "/x/%2e%2e%2F", "/%5c", "/x%5C..%5c",
  "/x//../", "/x/y//../../", "//x/", "//x//", "//x/../", "/..;/", "/x/..;y/", "/;x/", "/x/%252e%252e/", "/%252f", "/x/%c0%ae%c0%ae/",
];
const NAMES = ["admin", "Admin", "ADMIN", "%61dmin", "%41dmin", "adm%69N", "%61%64%6D%69%6E", "%2561dmin", "admin;x", "admin%20", "admin%00", ".admin"];
const SEPARATORS = ["/", "//", "\\", "%2f", "%2F", "%5c", "/./", "/.\\", "/x/../", "/%2e/", "/%2e%2e/admin/", "//../", "//./", "/..%2f", "/.%2f", ";x/", "%252f", "%2f../"];
const TAILS = ["u", "", "u/", "u;y", "..", "../public", "..%2fpublic", "%2e%2e/public", "..\\public", "u?x=1", "u?/../public", "u?x=%2e%2e\\"];

/** Those that were found first, and thousands more. */
function spellings() {
  const all = new Set([
    "/.\\admin/u", "/x/..\\admin/u", "/%2e\\admin/u", "/admin//../public", "/admin/..%2fpublic", "/admin\\x",
  ]);
  let turn = 0;
  for (const lead of LEADS) {
    for (const name of NAMES) {
      for (const separator of SEPARATORS) {
        all.add(`${lead}${name}${separator}${TAILS[(turn += 1) % TAILS.length]}`);
      }
    }
  }
  return all;
}

/** Paths that occur: they are answered, and reach whoever answers as they are. */
const ORDINARY = [
  "/", "/public/x", "/public/a%20b", "/%C3%BC/%e2%82%ac", "/a%2Fb", "/npm/@scope%2fpackage", "/a;b=c;d/e", "/a!$&'()*+,;=:@-._~", "/a//b",
  "/a/b//", "/%7Euser/%61", "/.well-known/acme-challenge/x", "/a.b..c/.../.d/..e", "/100%25", "/a%3Fb%23c", "/a:b", "/admin", "/administrator/u",
  "/x/admin/u", "/search?q=a%5Cb%00..%2f", "/search?next=//host/../admin/x", "/search?a=/./b//../c", "/search?", "/%252e%252e/%255c", "/a%26b=c",
];

for (const kind of Object.keys(KINDS)) {
  test(`${kind} behind a guard gets nothing below it, however it is spelled`, async (context) => {
    const ask = await start(context, kind, "\thandle /admin/* {\n\t\trespond blocked 403\n\t}\n\thandle {\n\t\tAPP\n\t}");
    const counts = { 200: 0, 400: 0, 403: 0 };
    const passed = [];
    for (const target of spellings()) {
      const { status, seen } = await ask(target);
      counts[status] += 1;
      const below = seen && readings(seen.url).some((path) => path.startsWith("/admin/"));
      if (below) passed.push(`${target} as ${seen.url}`);
    }
    assert.deepEqual(passed, [], `${passed.length} passed`);
    assert.ok(counts[200] > 100 && counts[400] > 1000 && counts[403] > 100, JSON.stringify(counts));
  });

  test(`${kind} gets ordinary paths as they were sent, and others without dot segments`, async (context) => {
    const ask = await start(context, kind, "\thandle /admin/* {\n\t\trespond blocked 403\n\t}\n\thandle {\n\t\tAPP\n\t}");
    const resolved = [
      ["/a/./b/../c%2Fd//e?x=/../y", "/a/c%2Fd//e?x=/../y"],
      ["/..", "/"],
      ["/a/..", "/"],
      ["/a/b/.", "/a/b/"],
      ["/../%7ea?b#".slice(0, -1), "/%7ea?b"],
      ["http://localhost/a/../b?c", "/b?c"],
      ["http://localhost", "/"],
      ["http://localhost?c", "/?c"],
    ];
    for (const [target, expected] of [...ORDINARY.map((target) => [target, target]), ...resolved]) {
      const { status, seen } = await ask(target);
      assert.equal(status, 200, target);
      const url = kind === "a fetch handler" ? new URL(`http://localhost${expected}`).href : expected;
      assert.equal(seen.url, url, target);
    }
    for (const target of ["http://localhost/x/../admin/u", "http://LOCALHOST/%61dmin/u", "/x/../ADMIN/u"]) {
      assert.equal((await ask(target)).status, 403, target);
    }
    assert.equal((await ask("http://localhost/x\\..\\admin/u")).status, 400);
    // A path of two slashes is a reference to another host (RFC 3986 section 4.2) for whoever resolves it.
    for (const target of ["//host/admin/u", "//", "/x/..//y"]) assert.equal((await ask(target)).status, 400, target);
    const upgrade = { Connection: "Upgrade", Upgrade: "websocket" };
    for (const [target, status] of [["/x/..\\admin/u", 400], ["/x/../admin/u", 403]]) {
      assert.equal((await ask(target, { fields: upgrade })).status, status, target);
    }
    assert.notEqual((await ask("*", { method: "OPTIONS" })).status, 403);
  });

  test(`${kind} behind a list of what is allowed gets nothing else`, async (context) => {
    const ask = await start(context, kind, "\thandle /public/* {\n\t\tAPP\n\t}\n\thandle {\n\t\trespond blocked 403\n\t}");
    let reached = 0;
    for (const target of spellings()) {
      for (const spelling of [`/public${target}`, target.replace(/(?<=\/)u(?=$|[/;?])/, "../public/u"), target.replace(/admin/i, "public")]) {
        const { seen } = await ask(spelling);
        if (!seen) continue;
        reached += 1;
        for (const path of readings(seen.url).slice(0, 2)) {
          assert.match(path, /^\/(%2f)*public(\/|%2f)/, `${spelling} as ${seen.url}`);
        }
      }
    }
    assert.ok(reached > 500, String(reached));
    for (const target of ["/public/x", "/public//x", "/PUBLIC/a%2fb"]) assert.equal((await ask(target)).status, 200, target);
  });

  test(`${kind} is not reached by paths that rewrites and prefixes lead past a guard`, async (context) => {
    const ask = await start(
      context,
      kind,
      `	rewrite /go /{query.to}
	rewrite /again/* /api{path}
	handle /admin/* {
		respond blocked 403
	}
	handle_path /api* {
		handle /admin/* {
			respond blocked 403
		}
		handle {
			APP
		}
	}
	handle {
		APP
	}`,
    );
    for (const [target, status, url] of [
      ["/go?to=public/x", 200, "/public/x?to=public/x"],
      ["/go?to=admin/x", 403],
      ["/go?to=x/../admin/x", 403],
      ["/go?to=x/%2e%2e/admin/x", 403],
      ["/go?to=%2561dmin/x", 200, "/%2561dmin/x?to=%2561dmin/x"],
      ["/go?to=x\\..\\admin/x", 400],
      ["/go?to=/host/admin/x", 400],
      ["/api/x%20y//z", 200, "/x%20y//z"],
      ["/api/admin/x", 403],
      ["/%61pi/%61dmin/x", 403],
      ["/api//admin/x", 403],
      ["/api//x", 200, "/x"],
      ["/x/../api/admin/x", 403],
      ["/apiadmin/x", 403],
      ["/api../admin/x", 403],
      ["/api%2e%2e/admin/x", 400],
      ["/api%2fadmin/x", 403],
      ["/again/a%2fb", 200, "/again/a%2fb"],
    ]) {
      const answer = await ask(target);
      assert.equal(answer.status, status, target);
      if (url) assert.equal(answer.seen.url.replace(/^http:\/\/[^/]*/, ""), url, target);
    }
  });

  test(`${kind} behind a rate limit is not reached by another spelling`, async (context) => {
    const ask = await start(
      context,
      kind,
      `	rate_limit /login {
		zone login {
			events 1
			window 1h
		}
	}
	rate_limit /by-path/* {
		zone by-path {
			events 1
			window 1h
			key {path}
		}
	}
	APP`,
    );
    assert.equal((await ask("/login")).status, 200);
    assert.equal((await ask("/by-path/x")).status, 200);
    for (const target of ["/login", "/LOGIN", "/l%6fgin", "//login", "/./login", "/x/../login", "/x/%2e%2e/login", "/x/..\\login", "/.\\login", "/login?x"]) {
      assert.match(String((await ask(target)).status), /^4(29|00)$/, target);
      const byPath = target.replace("/login", "/by-path/x").replace("/LOGIN", "/BY-PATH/X").replace("\\login", "\\by-path/x").replace("/l%6fgin", "/b%79-path//x");
      assert.match(String((await ask(byPath)).status), /^4(29|00)$/, byPath);
    }
    assert.equal((await ask("/by-path/y")).status, 200);
  });
}

test("doubled slashes are one slash to a pattern, unless it has one itself", async (context) => {
  const folder = workFolder(context);
  const text = `{
	admin off
}
http://localhost:0 {
	handle /a//b* {
		respond doubled
	}
	handle /a/b* {
		respond single
	}
	handle {
		respond neither
	}
}
`;
  const connection = await Connection.open((await startOnehop(context, { folder, text })).port);
  context.after(() => connection.close());
  for (const [target, expected] of [
    ["/a/b", "single"], ["/a//b", "doubled"], ["/a///b", "single"], ["//a/b", "single"], ["//a//b", "single"], ["/a/%2fb", "doubled"],
    ["/a%2fb", "single"], ["/b", "neither"],
  ]) {
    assert.equal((await connection.request(target)).body.toString(), expected, target);
  }
});

for (const files of ["file_server", "try_files {path} /index.html\n\t\tfile_server"]) {
  test(`files with unusual names are served, and none behind a guard is: ${files.split(/\s/)[0]}`, async (context) => {
    const folder = workFolder(context);
    const plain = ["a b.txt", "ü.txt", "100%.txt", "a;b.txt", "(x).txt", "a+b@c.txt", "%2e.txt"];
    for (const name of [...plain, "..a.d/x.txt", "private/secret.txt", "(private)/secret.txt"]) {
      mkdirSync(join(folder, "site", posix.dirname(name)), { recursive: true });
      writeFileSync(join(folder, "site", name), name);
    }
    writeFileSync(join(folder, "site/index.html"), "the page");
    writeFileSync(join(folder, "site/bad.html"), "a bad path");
    const text = `{
	admin off
}
http://localhost:0 {
	root * ./site
	handle /private/* {
		respond blocked 403
	}
	handle /(private)/* {
		respond blocked 403
	}
	handle {
		${files}
	}
	handle_errors 400 {
		rewrite * /bad.html
		file_server
	}
}
`;
    const connection = await Connection.open((await startOnehop(context, { folder, text })).port);
    context.after(() => connection.close());
    for (const name of plain) {
      const target = `/${encodeURIComponent(name)}`;
      assert.equal((await connection.request(target)).body.toString(), name, target);
    }
    for (const target of [
      "/private/secret.txt", "/%70rivate/secret.txt", "//private//secret.txt", "/private%2fsecret.txt", "/x/../private/secret.txt",
      "/PRIVATE/secret.txt", "/(private)/secret.txt", "/%28private%29/secret.txt", "/x%2f../private/secret.txt", "/x\\..\\private/secret.txt",
    ]) {
      const answer = await connection.request(target);
      assert.ok(!answer.body.includes("secret"), target);
      assert.match(String(answer.status), /^40[03]$/, target);
      if (answer.status === 400) assert.equal(answer.body.toString(), "a bad path", target);
    }
    // No name has a slash in it.
    assert.ok(!(await connection.request("/%2e%2ea.d%2fx.txt")).body.includes("..a"));
  });
}
