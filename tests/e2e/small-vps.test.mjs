// docs/guide/small-vps.md, step by step: on the other side there is nothing but the file that was copied.
// Needs: the static onehop.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { STATIC, ask, skip, startInRoot, until } from "./empty-root.mjs";
import { ROOT, freePort, run, workFolder } from "./program.mjs";

const PROGRAM = "/usr/local/bin/shop";
const OVERRIDE = "/etc/shop/override";

const ONEHOPFILE = `http://shop.example.com {
	app /api/* ./server.mjs {
		name api
		env_pass MAIL_TOKEN
		data shop
	}
	spa ./dist
}
`;
const HANDLER = `import sqlite from "node-sqlite3-wasm";

const database = new sqlite.Database(\`\${process.env.APP_DATA_DIR}/shop.db\`);
database.exec("PRAGMA busy_timeout = 5000"); // Other workers write too.
database.exec("CREATE TABLE IF NOT EXISTS orders (at TEXT)");

export default {
	fetch(request) {
		if (request.method === "POST") database.run("INSERT INTO orders VALUES (datetime())");
		const { orders } = database.get("SELECT count(*) AS orders FROM orders");
		return Response.json({ orders, token: process.env.MAIL_TOKEN, pid: process.pid });
	},
};
`;
const PACKAGE = { name: "shop", type: "module", dependencies: { "node-sqlite3-wasm": "*" } };
const DATABASE = "/var/lib/onehop/apps/shop/shop.db";

/** The folder on the own machine. */
function project(context, page) {
  const folder = join(workFolder(context), "shop");
  mkdirSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "Onehopfile"), ONEHOPFILE);
  writeFileSync(join(folder, "package.json"), JSON.stringify(PACKAGE));
  const sqlite = "node_modules/node-sqlite3-wasm";
  cpSync(join(ROOT, "tests/e2e", sqlite), join(folder, sqlite), { recursive: true });
  // What was tried out at home stays there.
  writeFileSync(join(folder, "shop.db"), "rows of the developer");
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  writeFileSync(join(folder, ".env"), "MAIL_TOKEN=a-secret\n");
  writeFileSync(join(folder, "dist/index.html"), `<!doctype html><title>${page}</title>`);
  return folder;
}

const pack = (folder, to, options) => run(STATIC, ["pack", join(folder, "Onehopfile"), "-o", to, ...options]);

test("the guide to a small server works with nothing on it but the file", { skip }, async (context) => {
  const folder = project(context, "first");
  const port = await freePort();
  const [first, second] = ["first", "second"].map((name) => join(workFolder(context), name));

  // 1. Pack it. What is secret is refused, with the way on.
  const refused = await pack(folder, first, ["--runtime", "node"]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /\.env .*MAIL_TOKEN/);
  assert.match(refused.stderr, /--exclude \.env/);
  const packed = await pack(folder, first, ["--runtime", "node", "--exclude", ".env"]);
  assert.equal(packed.code, 0, packed.stderr);
  assert.match(packed.stderr, /left out: shop\.db: a database/);
  for (const text of ["a-secret", "rows of the developer"]) assert.ok(!readFileSync(first).includes(text), text);

  // 2. Copy it. A copy that is cut off says so.
  const root = join(workFolder(context), "root");
  mkdirSync(join(root, "usr/local/bin"), { recursive: true });
  mkdirSync(join(root, "etc/shop"), { recursive: true });
  const there = (program, words) => run("chroot", [root, program, ...words]);
  copyFileSync(first, join(root, PROGRAM));
  truncateSync(join(root, PROGRAM), statSync(first).size - 1_000_000);
  const cut = await there(PROGRAM, []);
  assert.equal(cut.code, 1);
  assert.match(cut.stderr, /is cut off/);
  copyFileSync(first, join(root, PROGRAM));

  // 3. Run it.
  writeFileSync(join(root, OVERRIDE), `listen http://shop.example.com:${port}\n`);
  const start = () =>
    startInRoot(context, root, port, {
      program: PROGRAM,
      host: "shop.example.com",
      words: ["--override", OVERRIDE],
      env: { MAIL_TOKEN: "of-this-machine" },
    });
  const headers = { host: "shop.example.com" };
  const page = async () => String((await ask(port, "/", { headers })).body);
  const api = async (method = "GET") => {
    const answer = await until(() => ask(port, "/api/", { headers, method }), ({ status }) => status === 200);
    return JSON.parse(answer.body);
  };
  let running = await start();
  assert.match(await page(), /first/);
  const { token, orders } = await api();
  assert.deepEqual({ token, orders }, { token: "of-this-machine", orders: 0 });
  assert.equal((await api("POST")).orders, 1);
  assert.ok(existsSync(join(root, DATABASE)));

  // A restart keeps the rows.
  const stop = async () => {
    const stopped = await there(PROGRAM, ["stop"]);
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.deepEqual(await running.exited, { code: 0, signal: null }, running.lines.join("\n"));
  };
  await stop();
  running = await start();
  assert.equal((await api()).orders, 1);
  assert.equal((await api("POST")).orders, 2);

  // 4. Change settings. What is wrong is said, and changes nothing.
  const workers = async () => {
    const told = await there(PROGRAM, ["workers", "--json"]);
    assert.equal(told.code, 0, told.stderr);
    return JSON.parse(told.stdout).flatMap(({ workers }) => workers).filter(({ state }) => state === "serving").length;
  };
  const override = (more) => writeFileSync(join(root, OVERRIDE), `listen http://shop.example.com:${port}\n${more}\n`);
  override("app api {\n\tworkers 0\n}");
  assert.equal((await there(PROGRAM, ["validate", "--override", OVERRIDE])).code, 2);
  const wrong = await there(PROGRAM, ["reload"]);
  assert.equal(wrong.code, 1, wrong.stdout);
  assert.match(wrong.stderr, /workers/);
  assert.equal(await workers(), 1);
  override("app api {\n\tworkers 2\n}");
  const sound = await there(PROGRAM, ["validate", "--override", OVERRIDE]);
  assert.equal(sound.code, 0, sound.stderr);
  const reloaded = await there(PROGRAM, ["reload"]);
  assert.equal(reloaded.code, 0, reloaded.stderr);
  await until(async () => ({ status: await workers() }), ({ status }) => status === 2);

  // 5. Upgrade, and back again.
  writeFileSync(join(folder, "dist/index.html"), "<!doctype html><title>second</title>");
  const again = await pack(folder, second, ["--runtime", "node", "--exclude", ".env"]);
  assert.equal(again.code, 0, again.stderr);
  const at = (name) => join(root, name);
  copyFileSync(second, at(`${PROGRAM}.new`));
  const proved = await there(`${PROGRAM}.new`, ["inspect", "--verify"]);
  assert.equal(proved.code, 0, proved.stderr);
  copyFileSync(at(PROGRAM), at(`${PROGRAM}.old`));
  let rows = 2;
  for (const [from, title] of [[".new", /second/], [".old", /first/]]) {
    renameSync(at(PROGRAM + from), at(PROGRAM));
    await stop();
    running = await start();
    assert.match(await page(), title);
    assert.equal((await api()).orders, rows);
    rows += 1;
    assert.equal((await api("POST")).orders, rows);
  }

  // 6. Look at it.
  const status = await there(PROGRAM, ["status"]);
  assert.equal(status.code, 0, status.stderr);
  running.child.kill("SIGTERM");
  assert.deepEqual(await running.exited, { code: 0, signal: null }, running.lines.join("\n"));
});
