// The image that `onehop pack --oci` writes, loaded and run by podman: page and API as an ordinary user of a system of
// nothing, read-only, with 64 MiB and a tenth of a core; ended under load; asked for its health.
// Needs: podman, runc and nft.
// Alone: podman writes tables into the packet filter, which other tests compare with what it was.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { after, before, test } from "node:test";
import { skip as noStatic, STATIC } from "./empty-root.mjs";
import { freePort, run, workFolder } from "./program.mjs";

/** So long a container may take to answer. With a tenth of a core Node.js alone needs seconds. */
const DEADLINE_MS = 60_000;
/** Clients that ask again as soon as they have their answer. */
const CLIENTS = 16;
/** How many answers they have had when the container is stopped. */
const ANSWERS_BEFORE_STOP = 400;
/** Debian's crun refuses some layouts of control groups that runc takes; some machines bound descriptors tightly. */
const ENGINE = ["--runtime", "runc", "--cgroup-manager", "cgroupfs"];
const LIMITS = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000"];

/** So long the handler takes. */
const HANDLER_MS = 20;
/** Requests that may cross the close of their connection: it is idle for moments only. */
const CROSSED_MAX = 2;

const HANDLER = `
export default {
  async fetch(request) {
    await new Promise((go) => setTimeout(go, ${HANDLER_MS}));
    return Response.json({ path: new URL(request.url).pathname, uid: process.getuid() });
  },
};
`;

const skip = (() => {
  if (noStatic) return noStatic;
  for (const program of ["podman", "runc"]) {
    if (spawnSync(program, ["--version"]).status !== 0) return `${program} is not there: apt-get install podman runc`;
  }
  return false;
})();

const endings = [];
const suite = { after: (ending) => endings.push(ending) };
/** Tables that were there before podman made its own for published ports, which slow everything on loopback. */
let tables = "";
let folder;
let image;

/** podman with a store of its own, so that nothing of it stays. */
async function podman(...words) {
  const store = ["--root", join(folder, "store"), "--runroot", join(folder, "run")];
  return await run("podman", [...store, ...ENGINE, ...words]);
}

async function good(...words) {
  const { code, stdout, stderr } = await podman(...words);
  assert.equal(code, 0, `podman ${words.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
}

const natTables = () => spawnSync("nft", ["list", "tables"]).stdout?.toString() ?? "";

before(async () => {
  if (skip) return;
  tables = natTables();
  folder = workFolder(suite);
  const site = join(folder, "site");
  mkdirSync(join(site, "dist"), { recursive: true });
  mkdirSync(join(site, "api"));
  writeFileSync(join(site, "package.json"), JSON.stringify({ name: "shop" }));
  writeFileSync(join(site, "Onehopfile"), "{\n\tadmin off\n}\nhttp://:8080 {\n\tapp /api/* ./api/server.mjs\n\tspa ./dist\n}\n");
  writeFileSync(join(site, "dist/index.html"), "<!doctype html><title>shop</title>");
  writeFileSync(join(site, "api/server.mjs"), HANDLER);
  image = join(folder, "shop.tar");
  const words = ["pack", join(site, "Onehopfile"), "--runtime", "node", "--oci", image, "--tag", "shop:1"];
  const packed = await run(STATIC, [...words, "--label", "org.opencontainers.image.version=1.0"]);
  assert.equal(packed.code, 0, packed.stderr);
  await good("load", "-i", image);
});

after(async () => {
  if (skip) return;
  await podman("rm", "--all", "--force", "--time", "0");
  await podman("rmi", "--all", "--force");
  for (const table of ["ip nat", "ip filter", "ip6 nat", "ip6 filter"]) {
    if (!tables.includes(`table ${table}\n`)) spawnSync("nft", ["delete", "table", ...table.split(" ")]);
  }
  // Its storage is mounted onto itself while it is in use.
  spawnSync("umount", [join(folder, "store/overlay")]);
  for (const ending of endings) await ending();
});

/** Starts a container and returns its name and port when the API answers. */
async function start(context, name, options = [], from = "shop:1") {
  const port = await freePort();
  await good("run", "--detach", "--name", name, ...LIMITS, "--publish", `127.0.0.1:${port}:8080`, ...options, from);
  context.after(() => podman("rm", "--force", "--time", "0", name));
  const begun = performance.now();
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/up`).catch(() => undefined);
    if (answer?.status === 200) break;
    const logs = async () => (await podman("logs", name)).stdout.toString();
    assert.ok(performance.now() - begun < DEADLINE_MS, `${name} does not answer:\n${await logs()}`);
    // Each question costs a container with a tenth of a core what it needs to start.
    await pause(100);
  }
  context.diagnostic(`${name}: the API answered ${Math.round(performance.now() - begun)} ms after podman run`);
  return { name, origin: `http://127.0.0.1:${port}`, port };
}

test("page and API answer read-only, with 64 MiB and a tenth of a core", { skip }, async (context) => {
  const options = ["--read-only", "--memory", "64m", "--cpus", "0.1"];
  const { name, origin } = await start(context, "small", options);
  const page = await fetch(`${origin}/deep/link`, { headers: { accept: "text/html" } });
  assert.equal(await page.text(), "<!doctype html><title>shop</title>");
  assert.deepEqual(await (await fetch(`${origin}/api/x`)).json(), { path: "/api/x", uid: 65532 });
  const events = (await podman("logs", name)).stdout.toString().trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(events.some(({ event }) => event === "ready"), "logs are JSON on standard output");
  assert.ok(!events.some(({ event }) => event === "unpacked"), "the image brings what would be unpacked");
  const status = JSON.parse(await good("exec", name, "/shop", "status", "--json"));
  assert.equal(status.threads, 1, "one thread where the quota is below a core");
  assert.notEqual(status.pid, 1, "process 1 is the small one");
  assert.equal(await good("exec", name, "/shop", "status", "--healthy"), "healthy");
  assert.notEqual((await podman("exec", name, "/bin/sh", "-c", "true")).code, 0, "there is a shell");
});

test("the control socket has a place when /run and /tmp are read-only too", { skip }, async (context) => {
  const { name } = await start(context, "closed", ["--read-only", "--read-only-tmpfs=false"]);
  assert.equal(await good("exec", name, "/shop", "status", "--healthy"), "healthy");
});

test("stopping under load loses no request", { skip }, async (context) => {
  const { name, port } = await start(context, "busy");
  let answers = 0;
  const lost = [];
  let crossed = 0;
  let hasEnough;
  const enough = new Promise((resolve) => (hasEnough = resolve));
  const client = async (number) => {
    const path = number % 2 === 0 ? "/api/x" : "/";
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    // Until the server says that the connection ends. No new one is made: podman itself listens at the port, too.
    for (;;) {
      const answer = await ask(socket, path);
      if (!answer.isWhole) {
        // The close and the request crossed on the way: the end is there before a handler could have answered.
        if (answer.bytes === 0 && answer.took < HANDLER_MS / 2) crossed += 1;
        else lost.push({ path, ...answer });
        break;
      }
      answers += 1;
      if (answers >= ANSWERS_BEFORE_STOP) hasEnough();
      if (answer.isLast) break;
    }
    socket.destroy();
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
  await enough;
  await good("stop", "--time", "30", name);
  await Promise.all(clients);
  assert.deepEqual(lost, [], `of ${answers}`);
  assert.equal(await good("inspect", name, "--format", "{{.State.ExitCode}}"), "0");
  const stopped = (await podman("logs", name)).stdout.toString().trim().split("\n").at(-1);
  const { time, ...rest } = JSON.parse(stopped);
  assert.match(time, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.deepEqual(rest, { cut_off: 0, event: "stopped" });
  assert.ok(crossed <= CROSSED_MAX, `${crossed} requests crossed the close of their idle connections`);
  context.diagnostic(`${answers} answers, ${crossed} requests crossed the close`);
});

test("both forms of the file are read, and the health check of Docker's is there", { skip }, async (context) => {
  const inspect = async (name) => JSON.parse(await good("image", "inspect", name))[0];
  const loaded = await inspect("shop:1");
  assert.equal(loaded.Config.Labels["org.opencontainers.image.version"], "1.0");
  assert.equal(loaded.Config.User, "65532:65532");
  await good("rmi", "shop:1");
  await good("pull", `oci-archive:${image}`);
  assert.equal((await inspect("shop:1")).Id, loaded.Id);
  await good("rmi", "shop:1");
  await good("pull", `docker-archive:${image}`);
  const { name } = await start(context, "asked", ["--read-only"]);
  assert.equal((await podman("healthcheck", "run", name)).code, 0);
});

/** One request and its answer, to the last byte. */
function ask(socket, path) {
  return new Promise((resolve) => {
    let text = "";
    const begun = performance.now();
    const finish = (isWhole) => {
      socket.off("data", take).off("close", end).off("error", end).off("end", end);
      resolve({ isWhole, isLast: /^connection: close/im.test(text), bytes: text.length, took: performance.now() - begun });
    };
    const take = (bytes) => {
      text += bytes.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1]);
      if (head >= 0 && text.length >= head + 4 + length) finish(true);
    };
    const end = () => finish(false);
    socket.on("data", take).on("close", end).on("error", end).on("end", end);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  });
}
