// HTTP/2 with clients that others wrote: curl, nghttp, h2load, Go's, and Chromium, which opens a WebSocket over it.
// Needs: curl, nghttp2-client, Go, Chromium.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { run, workFolder } from "./program.mjs";
import { LARGE, startSite } from "./http2-sites.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const LOAD = { requests: 5_000, clients: 10 };

const endings = [];
const suite = { after: (ending) => endings.push(ending) };
let clear;
let encrypted;

before(async () => {
  clear = await startSite(suite, "http");
  encrypted = await startSite(suite, "https");
});
after(async () => {
  for (const ending of endings) await ending();
});

/** Asks with curl: version and status that it saw, and the body. */
async function curl(options, url) {
  const format = ["--write-out", "%{stderr}%{http_version} %{http_code}", "--output", "-"];
  const { code, stdout, stderr } = await run("curl", ["--silent", "--max-time", "20", ...format, "--cacert", encrypted.root, ...options, url]);
  assert.equal(code, 0, `curl ${options.join(" ")} ${url}: ${stderr}`);
  return { seen: stderr, body: stdout };
}

test("curl speaks HTTP/2 with prior knowledge, by ALPN, and HTTP/1.1 where it is told to", async () => {
  for (const [options, origin, version] of [
    [["--http2-prior-knowledge"], clear.origin, 2],
    [["--http2"], encrypted.origin, 2],
    [[], encrypted.origin, 2],
    [["--http1.1"], encrypted.origin, 1.1],
    [["--http1.1"], clear.origin, 1.1],
    // An offer to upgrade to h2c (RFC 7540 section 3.2, gone from RFC 9113) is not taken; the request is answered.
    [["--http2"], clear.origin, 1.1],
  ]) {
    const page = await curl(options, `${origin}/`);
    assert.equal(page.seen, `${version} 200`, `${options} ${origin}`);
    assert.match(page.body.toString(), /<h1>hello/);
  }
});

test("curl gets a large file, a compressed one and a part, and sends a body", async () => {
  for (const [options, origin] of [[["--http2-prior-knowledge"], clear.origin], [["--http2"], encrypted.origin]]) {
    assert.equal((await curl(options, `${origin}/large.bin`)).body.length, LARGE);
    const part = await curl([...options, "--range", "16-31"], `${origin}/large.bin`);
    assert.deepEqual([part.seen, part.body.toString()], ["2 206", "0123456789abcdef"]);
    assert.equal((await curl([...options, "--compressed"], `${origin}/style.css`)).body.toString(), "h1 { color: green }\n".repeat(100));
    assert.equal((await curl([...options, "--head"], `${origin}/`)).seen, "2 200");
    const file = join(workFolder(suite), "upload");
    writeFileSync(file, Buffer.alloc(2_000_000, "an upload "));
    for (const more of [[], ["--header", "Expect: 100-continue"]]) {
      const echoed = await curl([...options, ...more, "--data-binary", `@${file}`], `${origin}/api/echo`);
      assert.deepEqual([echoed.seen, echoed.body.length], ["2 200", 2_000_000], more.join(" "));
    }
  }
  // Over one connection, many at a time. With prior knowledge this fails in Debian's curl, whoever the server is.
  const { code, stdout, stderr } = await run("curl", ["--silent", "--parallel", "--fail", "--cacert", encrypted.root, "--output", "/dev/null", "--write-out", "%{http_version}\n", `${encrypted.origin}/api/[1-50]`]);
  assert.deepEqual([code, stdout.toString()], [0, "2\n".repeat(50)], stderr);
});

test("nghttp gets a page with all that it names, in clear text and over TLS", async () => {
  for (const origin of [clear.origin, encrypted.origin]) {
    const { code, stdout, stderr } = await run("nghttp", ["--null-out", "--stat", "--get-assets", "--no-verify-peer", "--timeout=20", `${origin}/`]);
    assert.equal(code, 0, stderr);
    const statuses = [...stdout.toString().matchAll(/\s(\d{3})\s+[\d.]+[KM]?\s+(\/\S*)/g)].map(([, status, path]) => `${status} ${path}`);
    assert.deepEqual(statuses.sort(), ["200 /", "200 /script.js", "200 /style.css"], stdout.toString());
  }
});

test("nghttp sends trailers, padding and a body, and asks to continue", async () => {
  const file = join(workFolder(suite), "upload");
  writeFileSync(file, "an upload ".repeat(100_000));
  const options = ["--no-verify-peer", "--timeout=20", `--data=${file}`];
  for (const more of [["--trailer=x-sum: 5"], ["--padding=100"], ["--expect-continue"], ["--window-bits=10"], ["--header-table-size=0"]]) {
    const { code, stdout, stderr } = await run("nghttp", [...options, ...more, `${encrypted.origin}/api/whole`]);
    assert.deepEqual([code, stdout.length], [0, 1_000_000], `${more}: ${stderr}`);
  }
});

test(`h2load gets ${LOAD.requests} responses over ${LOAD.clients} connections without an error`, async () => {
  // A handler refuses what it has no time for (docs/limits.md): fewer at once, so that none has to wait for long.
  for (const [url, streams] of [[`${clear.origin}/style.css`, 100], [`${encrypted.origin}/style.css`, 100], [`${encrypted.origin}/api/x`, 5]]) {
    const options = ["-n", LOAD.requests, "-c", LOAD.clients, "-m", streams, "-t", 1].map(String);
    const { code, stdout, stderr } = await run("h2load", [...options, url]);
    assert.equal(code, 0, stderr);
    const [, line] = /^requests: (.*)$/m.exec(stdout.toString()) ?? [];
    const wanted = `${LOAD.requests} total, ${LOAD.requests} started, ${LOAD.requests} done, ${LOAD.requests} succeeded, 0 failed, 0 errored, 0 timeout`;
    assert.equal(line, wanted, stdout.toString());
    assert.match(stdout.toString(), new RegExp(`^status codes: ${LOAD.requests} 2xx`, "m"));
  }
});

const GO = ["/usr/local/go/bin/go", "/usr/bin/go"].find(existsSync);

const GO_CLIENT = `
package main

import ("bytes"; "crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os"; "sync")

func main() {
	root, _ := os.ReadFile(os.Args[2])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	var all sync.WaitGroup
	for number := range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			body := bytes.Repeat([]byte{byte(number)}, 200000)
			response, err := client.Post(os.Args[1], "application/octet-stream", bytes.NewReader(body))
			if err != nil { fmt.Println(err); os.Exit(1) }
			echoed, err := io.ReadAll(response.Body)
			if err != nil || !bytes.Equal(echoed, body) || response.Proto != "HTTP/2.0" || response.StatusCode != 200 {
				fmt.Println(number, response.Proto, response.StatusCode, len(echoed), err)
				os.Exit(1)
			}
		}()
	}
	all.Wait()
	fmt.Println("all")
}
`;

test("Go's client gets a hundred echoes at once", { skip: !GO && "Go is not here" }, async () => {
  const folder = workFolder(suite);
  writeFileSync(join(folder, "client.go"), GO_CLIENT);
  const { code, stdout, stderr } = await run(GO, ["run", "client.go", `${encrypted.origin}/api/echo`, encrypted.root], { cwd: folder, env: { ...process.env, GOFLAGS: "-mod=mod" } });
  assert.deepEqual([code, stdout.toString()], [0, "all\n"], stderr);
});

test("Chromium loads a page over HTTP/2 and opens a WebSocket over it", async (context) => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  context.after(() => browser.close());
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  await page.goto(`${encrypted.origin}/`, { waitUntil: "networkidle" });
  assert.equal(await page.title(), "it runs");
  const protocols = await page.evaluate(() => {
    const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return entries.map(({ name, nextHopProtocol }) => [new URL(name).pathname, nextHopProtocol]);
  });
  assert.deepEqual(protocols.filter(([path]) => path !== "/favicon.ico").sort(), [["/", "h2"], ["/script.js", "h2"], ["/style.css", "h2"]]);
  const echoed = await page.evaluate(async () => (await fetch("/api/echo", { method: "POST", body: "a body".repeat(50_000) })).text());
  assert.equal(echoed, "a body".repeat(50_000));

  const messages = await page.evaluate(() => new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/socket?a=b", "chat");
    const messages = [];
    socket.onerror = () => reject(new Error("the WebSocket failed"));
    socket.onmessage = ({ data }) => {
      messages.push(data);
      if (messages.length === 1) socket.send("an echo");
      else socket.close(1000);
    };
    socket.onclose = ({ code, wasClean }) => resolve({ messages, code, wasClean, protocol: socket.protocol });
  }));
  assert.equal(JSON.parse(messages.messages[0]).url, "/socket?a=b");
  assert.deepEqual([messages.messages[1], messages.code, messages.wasClean, messages.protocol], ["an echo", 1000, true, "chat"]);
  let line;
  while (!line) {
    line = readFileSync(encrypted.log, "utf8").split("\n").find((text) => text.includes("/socket?a=b"));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(JSON.parse(line).request.proto, "HTTP/2.0", line);
});
