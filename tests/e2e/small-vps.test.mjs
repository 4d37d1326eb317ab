// docs/guide/small-vps.md, step by step: on the other side there is nothing but the file that was copied.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { STATIC, ask, skip, startInRoot, until } from "./empty-root.mjs";
import { freePort, run, workFolder } from "./program.mjs";

const PROGRAM = "/usr/local/bin/shop";
const OVERRIDE = "/etc/shop/override";

const ONEHOPFILE = `http://shop.example.com {
	app /api/* ./server.mjs {
		name api
		env_pass DATABASE_URL
	}
	spa ./dist
}
`;
const HANDLER = `export default {
	fetch: () => Response.json({ database: process.env.DATABASE_URL, pid: process.pid }),
};
`;

/** The folder on the own machine. */
function project(context, page) {
  const folder = join(workFolder(context), "shop");
  mkdirSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "Onehopfile"), ONEHOPFILE);
  writeFileSync(join(folder, "package.json"), '{ "name": "shop", "type": "module" }');
  writeFileSync(join(folder, "server.mjs"), HANDLER);
  writeFileSync(join(folder, ".env"), "DATABASE_URL=postgres://a-secret@db\n");
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
  assert.match(refused.stderr, /\.env .*DATABASE_URL/);
  assert.match(refused.stderr, /--exclude \.env/);
  const packed = await pack(folder, first, ["--runtime", "node", "--exclude", ".env"]);
  assert.equal(packed.code, 0, packed.stderr);
  assert.ok(!readFileSync(first).includes("a-secret"));

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
      env: { DATABASE_URL: "postgres://of-this-machine" },
    });
  const headers = { host: "shop.example.com" };
  const page = async () => String((await ask(port, "/", { headers })).body);
  const api = () => until(() => ask(port, "/api/", { headers }), ({ status }) => status === 200);
  let running = await start();
  assert.match(await page(), /first/);
  assert.equal(JSON.parse((await api()).body).database, "postgres://of-this-machine");

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
  for (const [from, title] of [[".new", /second/], [".old", /first/]]) {
    renameSync(at(PROGRAM + from), at(PROGRAM));
    const stopped = await there(PROGRAM, ["stop"]);
    assert.equal(stopped.code, 0, stopped.stderr);
    assert.deepEqual(await running.exited, { code: 0, signal: null }, running.lines.join("\n"));
    running = await start();
    assert.match(await page(), title);
    assert.equal(JSON.parse((await api()).body).database, "postgres://of-this-machine");
  }

  // 6. Look at it.
  const status = await there(PROGRAM, ["status"]);
  assert.equal(status.code, 0, status.stderr);
  running.child.kill("SIGTERM");
  assert.deepEqual(await running.exited, { code: 0, signal: null }, running.lines.join("\n"));
});
