// Idioms of nginx.conf on nginx itself and, as `onehop adapt` prints them, on onehop: both answer the same.
//
// Needs: nginx, openssl.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { dirname, join } from "node:path";
import { before, after, test } from "node:test";
import { accepts, freePort, ONEHOP, run, startOnehop, workFolder } from "./program.mjs";

const FILES = {
  "site/index.html": "<h1>home</h1>\n",
  "site/about.html": "about\n",
  "site/docs/index.html": "docs\n",
  "site/assets/app.js": "app()\n",
  "site/assets/app.css": "a{}\n",
  "site/.git/config": "secret\n",
  "site/.well-known/x.txt": "known\n",
  "site/404.html": "an own page\n",
  "other/50x.html": "an own page\n",
  "other/a.txt": "other\n",
  // The public password is `right`; onehop does not verify the hash of `old`.
  "users": "ann:$2y$04$HTUQuIBdzEfTanCVC8Sr8.m2n0w1mghKyO6K2XMMKdMJ6tsIfG/2q\nold:$apr1$OA1MwEqN$EI2y9yEntC9q5O4FmeSU1/\n",
};
/** Field lines of responses that both have to have alike. */
const COMPARED = ["location", "content-type", "cache-control", "x-own", "x-upstream", "allow", "www-authenticate"];
const APP = "proxy_pass http://127.0.0.1:UPSTREAM;";
const HOST = "proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;";

/** Each with the paths that are asked; `closed` are paths that onehop refuses until somebody decides. */
const IDIOMS = [
  { name: "a folder of files", conf: "root SITE;", paths: ["/", "/about.html", "/docs/", "/docs", "/nothing", "/assets/app.js"] },
  { name: "a single-page application", conf: "root SITE; location / { try_files $uri $uri/ /index.html; }", paths: ["/", "/about.html", "/deep/link", "/docs/"] },
  { name: "files or 404", conf: "root SITE; location / { try_files $uri =404; }", paths: ["/about.html", "/nothing", "/assets/app.css"] },
  { name: "pages without their ending", conf: "root SITE; location / { try_files $uri $uri.html =404; }", paths: ["/about", "/about.html", "/nothing"] },
  { name: "an application", conf: `location / { ${APP} ${HOST} }`, paths: ["/", "/a%20b?c=d&e", "/status/404", "/status/500"] },
  { name: "an application without Host", conf: `location / { ${APP} }`, paths: ["/", "/x"] },
  { name: "a prefix taken off by a slash", conf: `location /api/ { proxy_pass http://127.0.0.1:UPSTREAM/; ${HOST} }`, paths: ["/api/", "/api/a/b?c=d", "/api", "/other"] },
  { name: "a prefix replaced", conf: `location /old/ { proxy_pass http://127.0.0.1:UPSTREAM/new/; ${HOST} }`, paths: ["/old/", "/old/a?b=c"] },
  { name: "a prefix taken off by a rewrite", conf: `location /api/ { rewrite ^/api/(.*)$ /$1 break; ${APP} ${HOST} }`, paths: ["/api/a", "/api/a/b?c=d"] },
  { name: "files before the application", conf: `root SITE; location / { try_files $uri @app; } location @app { ${APP} ${HOST} }`, paths: ["/about.html", "/anything", "/assets/app.js"] },
  { name: "a health check", conf: `location = /health { return 200 "ok\\n"; add_header Content-Type text/plain; } location / { ${APP} ${HOST} }`, paths: ["/health", "/healthy", "/health/"], ignored: ["content-type"] },
  { name: "redirects", conf: "location = /old { return 301 /new; } location /moved/ { return 302 https://elsewhere.example$request_uri; } location / { return 410; }", paths: ["/old", "/moved/a?b=c", "/gone"] },
  { name: "an alias", conf: "location /files/ { alias OTHER/; }", paths: ["/files/a.txt", "/files/nothing"] },
  { name: "lifetimes by ending", conf: "root SITE; location ~* \\.(js|css)$ { expires 1y; } location / { try_files $uri $uri/ =404; }", paths: ["/assets/app.js", "/about.html", "/assets/none.js"] },
  { name: "fields of responses", conf: `add_header X-Own yes always; location / { ${APP} ${HOST} } location /files/ { alias OTHER/; }`, paths: ["/", "/status/404", "/files/a.txt"] },
  { name: "names with a dot refused", conf: "root SITE; location ~ /\\.(?!well-known) { deny all; }", paths: ["/.git/config", "/.well-known/x.txt", "/about.html"] },
  { name: "a strong prefix before an expression", conf: `root SITE; location ^~ /assets/ { ${APP} ${HOST} } location ~ \\.html$ { return 410; }`, paths: ["/assets/app.js", "/about.html", "/assets/x.html"] },
  { name: "the longest prefix", conf: `location / { return 200 root; } location /a/ { return 200 a; } location /a/b/ { return 200 b; } location = /a/b/c { return 200 c; }`, paths: ["/", "/a/x", "/a/b/x", "/a/b/c", "/a/b/cd"] },
  { name: "fields to and from the application", conf: `location / { ${APP} ${HOST} proxy_set_header X-Key secret; proxy_hide_header X-Upstream; }`, paths: ["/", "/x"] },
  { name: "a host that the application is told", conf: `location / { ${APP} proxy_set_header Host app.example; }`, paths: ["/"] },
  { name: "two servers of an application", before: "upstream app { server 127.0.0.1:UPSTREAM; server 127.0.0.1:UPSTREAM2; }", conf: `location / { proxy_pass http://app; ${HOST} }`, paths: ["/", "/a"] },
  { name: "passwords", conf: `root SITE; location /docs/ { auth_basic staff; auth_basic_user_file /dev/null; }`, paths: ["/about.html"], closed: ["/docs/", "/docs/index.html"] },
  { name: "addresses", conf: `root SITE; location /docs/ { allow 10.0.0.0/8; deny all; }`, paths: ["/about.html"], closed: ["/docs/"] },
  { name: "addresses before files and the application", conf: `root SITE; deny 127.0.0.1; location / { try_files $uri @app; } location @app { ${APP} ${HOST} }`, paths: [], closed: ["/about.html", "/anything"] },
  { name: "a prefix replaced without a slash", conf: `location /a { proxy_pass http://127.0.0.1:UPSTREAM/x; ${HOST} }`, paths: ["/a/b?c", "/a", "/a?c", "/a/"] },
  { name: "a prefix taken off without a slash", conf: `location /a { proxy_pass http://127.0.0.1:UPSTREAM/; ${HOST} }`, paths: ["/a", "/abc?d"] },
  { name: "an exact path replaced", conf: `location = /b { proxy_pass http://127.0.0.1:UPSTREAM/c; ${HOST} }`, paths: ["/b?c", "/b", "/bc"] },
  { name: "texts as JSON", conf: `location /z { return 200 '{"a":"$host"}'; default_type application/json; }`, paths: ["/z", "/zz?a"] },
  { name: "an application without a root", conf: `location / { try_files $uri @app; } location @app { ${APP} ${HOST} }`, paths: ["/", "/anything?a=b"] },
  { name: "expressions", conf: 'root SITE; location ~ ^/v[0-9]+/ { return 200 version; } location ~* \\.(jpe?g|CSS)$ { expires 30d; } location ~ "^/users/\\d{2,3}$" { return 200 user; }', paths: ["/v1/x", "/v%31/x", "//v1/x", "/v/x", "/V1/x", "/assets/app.css", "/assets/app.js", "/users/12", "/users/1", "/users/12/x"], ignored: ["content-type"] },
  { name: "a strong prefix before an expression of no pattern", conf: `root SITE; location ^~ /assets/ { ${APP} ${HOST} } location ~ a.*s { return 410; }`, paths: ["/assets/app.js", "/about.html", "/a/s"] },
  { name: "redirects of rewrite", conf: "rewrite ^/old/(.*)$ /new/$1 permanent; rewrite ^/blog/?$ https://blog.example/ redirect; rewrite ^/gone$ /here? permanent; rewrite ^/away/(.*) https://$host/$1; location / { return 200 x; } location /in/ { rewrite ^/in/a /b redirect; return 200 in; }", paths: ["/old/a?b=c", "/old/", "/old", "/old/a%20b/c", "/blog", "/blog/?x=1", "/gone?x=1", "/gone", "/away/x/y?z", "/other", "/in/a?b", "/in/b"], ignored: ["content-type"] },
  { name: "another host", conf: "if ($host = site.example) { return 301 https://www.site.example$request_uri; } root SITE;", paths: ["/", "/about.html?a=b", "/none"] },
  { name: "conditions", conf: `root SITE; if ($request_method !~ ^(GET|HEAD)$) { return 405; } if ($http_user_agent ~* (bot|crawl)) { return 403; } location / { try_files $uri =404; } location /app/ { if ($http_cookie !~ session=.+) { return 302 /login; } ${APP} ${HOST} }`, paths: ["/about.html", "/none", "/app/"], methods: ["GET", "HEAD", "DELETE"], askers: [{}, { "User-Agent": "a Crawler" }, { Cookie: "session=1" }] },
  { name: "pages of errors", conf: `root SITE; error_page 404 /404.html; error_page 403 500 502 504 /50x.html; location = /50x.html { root OTHER; internal; } location / { try_files $uri =404; } location /down/ { proxy_pass http://127.0.0.1:9; } location /app/ { ${APP} ${HOST} } location /status/ { ${APP} ${HOST} }`, paths: ["/about.html", "/none", "/50x.html", "/404.html", "/down/", "/status/404", "/status/502"] },
];

const upstreams = [];
before(async () => {
  for (let count = 0; count < 2; count += 1) {
    const server = createServer((asked, response) => {
      const status = Number(/^\/status\/(\d+)/.exec(asked.url)?.[1] ?? 200);
      const { host, "x-real-ip": ip, "x-forwarded-for": via, "x-forwarded-proto": scheme, "x-key": key } = asked.headers;
      response.writeHead(status, { "Content-Type": "application/json", "X-Upstream": "yes" });
      response.end(JSON.stringify({ method: asked.method, url: asked.url, host, ip, via, scheme, key }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    upstreams.push(server);
  }
});
after(() => upstreams.forEach((server) => server.close()));

for (const idiom of IDIOMS) {
  test(`${idiom.name}: nginx and what adapt makes of it answer the same`, async (context) => {
    const { port, onehop, printed } = await both(context, idiom);
    const ignored = idiom.ignored ?? [];
    const asked = idiom.paths.flatMap((path) => (idiom.askers ?? [{}]).map((fields) => ({ path, fields })));
    for (const { path, fields } of asked) {
      for (const method of idiom.methods ?? ["GET", "HEAD"]) {
        const [theirs, ours] = await Promise.all([port, onehop.port].map((one) => ask(one, method, path, ignored, fields)));
        // The way to a folder's own slash is 308 here, as Caddy has it.
        if (ours.status === 308 && theirs.status === 301) ours.status = 301;
        ours.body = onlyAskedFields(ours.body, theirs.body);
        assert.deepEqual(ours, theirs, `${method} ${path} ${JSON.stringify(fields)}\n${printed}`);
      }
    }
    for (const path of idiom.closed ?? []) {
      const [theirs, ours] = await Promise.all([ask(port, "GET", path, []), ask(onehop.port, "GET", path, [])]);
      assert.ok(theirs.status === 401 || theirs.status === 403, `${path}: ${theirs.status}`);
      assert.equal(ours.status, 403, `${path}\n${printed}`);
    }
  });
}

const USERS = 'auth_basic "Staff only"; auth_basic_user_file users;';
test("a Unix socket: nginx and what adapt makes of it reach the application there", async (context) => {
  const socket = join(workFolder(context), "app.sock");
  const app = createServer((asked, response) => {
    response.writeHead(200, { "Content-Type": "text/plain", "X-Upstream": "yes" });
    response.end(`${asked.url} ${asked.headers.host}`);
  }).listen(socket);
  await once(app, "listening");
  context.after(() => app.close());
  const { port, onehop, printed } = await both(context, {
    before: `upstream app { server unix:${socket} fail_timeout=0; }`,
    conf: `location / { proxy_pass http://app; ${HOST} } location /a/ { proxy_pass http://unix:${socket}:/; }`,
  });
  for (const path of ["/", "/x?y", "/a/b?c"]) {
    const [theirs, ours] = await Promise.all([port, onehop.port].map((one) => ask(one, "GET", path, [])));
    assert.deepEqual(ours, theirs, `${path}\n${printed}`);
  }
});

test("an application over TLS: nginx and what adapt makes of it reach it, and verify it alike", async (context) => {
  const folder = workFolder(context);
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(folder, name));
  const made = await run("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]);
  assert.equal(made.code, 0, made.stderr);
  const app = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) }, (asked, response) => {
    response.writeHead(200, { "Content-Type": "text/plain", "X-Upstream": "yes" });
    response.end(`${asked.url} ${asked.headers.host}`);
  }).listen(0, "127.0.0.1");
  await once(app, "listening");
  context.after(() => app.close());
  const pass = `proxy_pass https://127.0.0.1:${app.address().port}`;
  const { port, onehop, printed } = await both(context, {
    conf: `location / { ${pass}; ${HOST} } location /own/ { ${pass}; } location /off/ { ${pass}/; proxy_set_header Host $http_host; }`,
  });
  for (const path of ["/x?y", "/own/", "/off/a"]) {
    const [theirs, ours] = await Promise.all([port, onehop.port].map((one) => ask(one, "GET", path, [])));
    assert.equal(theirs.status, 200, path);
    assert.deepEqual(ours, theirs, `${path}\n${printed}`);
  }
});

test("a number of requests at a time: nginx and what adapt makes of it refuse the one above it", async (context) => {
  const held = [];
  const app = createServer((asked, response) => held.push(response)).listen(0, "127.0.0.1");
  await once(app, "listening");
  context.after(() => app.close());
  const { port, onehop, printed } = await both(context, {
    before: "limit_conn_zone $server_name zone=all:1m;",
    conf: `server_name site.example; location / { limit_conn all 2; limit_conn_status 429; proxy_pass http://127.0.0.1:${app.address().port}; ${HOST} }`,
  });
  for (const [of, one] of [["nginx", port], ["onehop", onehop.port]]) {
    const asked = [1, 2, 3].map(() => ask(one, "GET", "/", []));
    // The others wait for the application, so the first response is the refusal.
    const { status } = await Promise.race(asked);
    assert.equal(status, 429, `${of}\n${printed}`);
    while (held.length < 2) await once(app, "request");
    held.splice(0).forEach((response) => response.end());
    assert.deepEqual((await Promise.all(asked)).map((response) => response.status).sort(), [200, 200, 429], of);
  }
});

/** Each with who asks for what: nginx's status is onehop's. */
const PASSWORDS = [
  { name: "passwords before an application", conf: `${USERS} location / { ${APP} ${HOST} } location /open/ { auth_basic off; ${APP} ${HOST} } location = /health { return 200 ok; }`, paths: ["/", "/open/", "/health"] },
  { name: "passwords before files", conf: `root SITE; location /docs/ { ${USERS} } location / { try_files $uri =404; }`, paths: ["/docs/index.html", "/docs/none", "/about.html"] },
  { name: "passwords before files and the application", conf: `root SITE; ${USERS} location / { try_files $uri @app; } location @app { ${APP} ${HOST} }`, paths: ["/about.html", "/anything"] },
  { name: "passwords of the application alone", conf: `root SITE; location / { try_files $uri @app; } location @app { ${USERS} ${APP} ${HOST} }`, paths: ["/about.html", "/anything"] },
];
const CREDENTIALS = [undefined, "ann:right", "ann:wrong", "nobody:right", ":"];

for (const idiom of PASSWORDS) {
  test(`${idiom.name}: nginx and what adapt makes of it admit the same`, async (context) => {
    const { port, onehop, printed } = await both(context, idiom);
    for (const path of idiom.paths) {
      for (const credentials of CREDENTIALS) {
        const fields = credentials && { Authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
        const [theirs, ours] = await Promise.all([port, onehop.port].map((one) => ask(one, "GET", path, [], fields)));
        assert.deepEqual(ours, theirs, `${path} ${credentials}\n${printed}`);
        assert.equal(theirs.status === 401, theirs["www-authenticate"] === 'Basic realm="Staff only"', path);
      }
    }
    assert.match(printed, /NOT CARRIED OVER: users:2: user `old` has an apr1 hash/);
    assert.doesNotMatch(printed, /OA1MwEqN/);
  });
}

/** Each with requests that arrive together: as many of them are refused, with the same status. The rate lets none more in. */
const RATES = [
  { name: "a rate without a burst", rate: "1r/m", limit: "limit_req zone=one;", refused: [4, 503] },
  { name: "a rate with a burst", rate: "1r/m", limit: "limit_req zone=one burst=3 nodelay; limit_req_status 429;", refused: [1, 429] },
  { name: "a rate with a status of its own", rate: "2r/m", limit: "limit_req zone=one burst=1 nodelay; limit_req_status 420;", refused: [3, 420] },
  { name: "the smaller of two rates", rate: "1r/m", more: "limit_req_zone $remote_addr zone=two:1m rate=1r/m;", limit: "limit_req zone=one burst=3 nodelay; limit_req zone=two burst=1 nodelay;", refused: [3, 503] },
];

for (const { name, rate, more = "", limit, refused: [refused, status] } of RATES) {
  test(`${name}: nginx and what adapt makes of it refuse as many of a burst`, async (context) => {
    const before = `limit_req_zone $binary_remote_addr zone=one:1m rate=${rate};\n${more}`;
    const conf = `root SITE; location /a/ { ${limit} ${APP} ${HOST} } location /docs/ { ${limit} } location /free/ { ${limit} return 200 free; }`;
    const { port, onehop, printed } = await both(context, { before, conf });
    for (const [of, one] of [["nginx", port], ["onehop", onehop.port]]) {
      // Both locations count in one zone.
      const paths = ["/a/", "/docs/index.html", "/a/x", "/docs/", "/a/"];
      const statuses = (await Promise.all(paths.map((path) => ask(one, "GET", path, [])))).map((response) => response.status);
      assert.equal(statuses.filter((found) => found === status).length, refused, `${of}: ${statuses}\n${printed}`);
      assert.equal(statuses.filter((found) => found === 200).length, paths.length - refused, `${of}: ${statuses}\n${printed}`);
      assert.equal((await ask(one, "GET", "/free/", [])).status, 200, of);
    }
  });
}

/** nginx with an idiom, and onehop with what adapt makes of it. */
async function both(context, idiom) {
  const folder = workFolder(context);
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const port = await freePort();
  const conf = join(folder, "nginx.conf");
  writeFileSync(conf, nginxConf(folder, port, idiom));
  await startNginx(context, folder, conf, port);
  const adapted = await run(ONEHOP, ["adapt", conf]);
  assert.equal(adapted.code, 0, adapted.stderr);
  const printed = adapted.stdout.toString();
  const onehop = await startOnehop(context, { folder, text: printed.replace(`:${port} {`, ":0 {") });
  return { port, onehop, printed };
}

function nginxConf(folder, port, idiom) {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  const user = process.getuid() === 0 ? "user root;\n" : "";
  const text = `${user}daemon off;\nworker_processes 1;\npid ${folder}/nginx.pid;\nerror_log ${folder}/error.log;\nevents {}\n`
    + `http {\ninclude /etc/nginx/mime.types;\naccess_log off;\n${temporary.join("\n")}\n${idiom.before ?? ""}\n`
    + `server {\nlisten 127.0.0.1:${port};\n${idiom.conf.replaceAll("; ", ";\n").replaceAll("{ ", "{\n")}\n}\n}\n`;
  const [one, other] = upstreams.map((server) => server.address().port);
  return text.replaceAll("UPSTREAM2", other).replaceAll("UPSTREAM", one)
    .replaceAll("SITE", join(folder, "site")).replaceAll("OTHER", join(folder, "other"));
}

async function startNginx(context, folder, conf, port) {
  const child = spawn("/usr/sbin/nginx", ["-p", folder, "-c", conf], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (bytes) => { said += bytes; });
  const ended = once(child, "exit");
  context.after(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** onehop tells the application who asks also where nginx does not: of what the application saw, what it saw behind nginx. */
function onlyAskedFields(ours, theirs) {
  if (!ours.startsWith("{") || !theirs.startsWith("{")) return ours;
  const names = Object.keys(JSON.parse(theirs));
  return JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(ours)).filter(([name]) => names.includes(name))));
}

/** What a response says that both have to say alike; ports are each server's own. */
async function ask(port, method, path, ignored, fields = {}) {
  const asked = request({ host: "127.0.0.1", port, method, path, headers: { Host: "site.example", Connection: "close", ...fields } });
  asked.end();
  const [response] = await once(asked, "response");
  let body = "";
  response.setEncoding("utf8");
  for await (const piece of response) body += piece;
  const { statusCode: status, headers } = response;
  const told = Object.fromEntries(COMPARED.filter((name) => !ignored.includes(name)).map((name) => [name, headers[name]]));
  if (told.location) told.location = new URL(told.location, "http://site.example").href.replace(`site.example:${port}`, "site.example");
  // onehop says of texts that they are UTF-8.
  told["content-type"] = told["content-type"]?.replace("; charset=utf-8", "").replace("application/javascript", "text/javascript");
  // An error's own page is each server's.
  if (status >= 300 && !headers["x-upstream"] && !body.includes("own page")) {
    body = "";
    delete told["content-type"];
  }
  return { status, ...told, body };
}
