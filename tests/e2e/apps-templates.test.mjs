// Applications as generators and guides of their frameworks leave them: each starts without a changed line, and
// answers as under Node.js alone.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { APPS, SIDES, ask, comparable, start } from "./apps/sides.mjs";
import { workFolder } from "./program.mjs";

const JSON_TYPE = { "Content-Type": "application/json" };
const json = (value) => ({ method: "POST", headers: JSON_TYPE, body: JSON.stringify(value) });
const graphql = (query) => json({ query });

const TEMPLATES = [
  {
    name: "express-generator's bin/www",
    generate: (folder) => ["node_modules/express-generator/bin/express-cli.js", "--no-view", folder],
    file: "bin/www",
    requests: [["/", 200], ["/users", 200], ["/stylesheets/style.css", 200], ["/stylesheets", 301], ["/nothing", 404], ["/users", 200, { method: "HEAD" }]],
  },
  {
    name: "fastify-cli's fastify start",
    generate: (folder) => ["node_modules/fastify-cli/cli.js", "generate", folder],
    file: "node_modules/fastify-cli/cli.js",
    args: ["start", "-l", "info", "app.js"],
    requests: [["/", 200], ["/example", 200], ["/nothing", 404], ["/", 404, json({})], ["/", 400, { ...json(""), body: "{" }]],
  },
  {
    name: "fastify-cli's fastify start, ES modules",
    generate: (folder) => ["node_modules/fastify-cli/cli.js", "generate", "--esm", folder],
    file: "node_modules/fastify-cli/cli.js",
    args: ["start", "-l", "info", "app.js"],
    requests: [["/", 200], ["/example", 200], ["/nothing", 404]],
  },
  {
    name: "Koa",
    file: "small/koa.mjs",
    requests: [["/", 200], ["/file", 200], ["/refused", 403], ["/json/earth", 200], ["/", 405, { method: "DELETE" }], ["/nothing", 404], ["/file", 200, { method: "HEAD" }]],
  },
  {
    name: "create-hono for Node.js",
    file: "small/hono.mjs",
    requests: [["/", 200], ["/echo", 201, json({ a: 1 })], ["/events", 200], ["/fails", 500], ["/static/koa.mjs", 200], ["/static/none", 404], ["/", 200, { method: "HEAD" }]],
  },
  {
    name: "Apollo's standalone server",
    file: "small/apollo.mjs",
    requests: [
      ["/", 200, graphql("{ planets { name days } }")],
      ["/", 200, graphql("{ planets(least: 400) { name } fails }")],
      ["/", 400, graphql("{ nothing }")],
      ["/", 200, graphql('mutation { add(name: "venus", days: 225) { name } }')],
      ["/?query=%7B__typename%7D", 200, { headers: { "Apollo-Require-Preflight": "true" } }],
      ["/", 400, { method: "POST", headers: { "Content-Type": "text/plain" }, body: "{}" }],
      ["/", 204, { method: "OPTIONS", headers: { Origin: "http://else.where", "Access-Control-Request-Method": "POST" } }],
    ],
  },
  {
    name: "tRPC's standalone adapter",
    file: "small/trpc.mjs",
    requests: [
      ["/hello", 200],
      ["/hello?input=%22onehop%22", 200],
      ["/hello,hello?batch=1&input=%7B%220%22%3A%22a%22%7D", 200],
      ["/hello,refused?batch=1", 207],
      ["/add", 200, json({ name: "venus" })],
      ["/add", 400, json({})],
      ["/refused", 403],
      ["/nothing", 404],
      ["/count", 200, { headers: { Accept: "text/event-stream" } }],
    ],
  },
];

for (const { name, generate, file, args = [], requests } of TEMPLATES) {
  test(`${name} answers as under Node.js alone`, async (context) => {
    const cwd = generate ? generated(context, generate) : APPS;
    const seen = {};
    for (const side of SIDES) {
      const running = await start(context, side, { file, args, cwd });
      seen[side] = [];
      for (const [path, status, settings] of requests) {
        const answer = comparable(await ask(running, path, settings));
        assert.equal(answer.status, status, `${side}: ${path}: ${answer.body}`);
        seen[side].push({ path, ...answer });
      }
      const { code } = await running.stop();
      if (side === "onehop") assert.equal(code, 0);
    }
    for (const [index, answer] of (seen.onehop ?? []).entries()) assert.deepEqual(answer, seen.alone?.[index] ?? answer);
  });
}

/** What a generator makes, in a folder of its own beside the packages that are installed here. */
function generated(context, generate) {
  const folder = join(workFolder(context), "application");
  execFileSync(process.execPath, generate(folder), { cwd: APPS, stdio: "ignore" });
  symlinkSync(join(APPS, "node_modules"), join(folder, "node_modules"));
  return folder;
}
