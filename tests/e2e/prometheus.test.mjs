// What promtool and Prometheus itself say of /metrics.
//
// Needs: prometheus (with promtool).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accepts, freePort, startOnehop, workFolder } from "./program.mjs";

const WITHIN_MS = 30_000;

test("promtool finds nothing wrong with the metrics", async (context) => {
  const { admin } = await served(context);
  const text = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
  const promtool = spawn("promtool", ["check", "metrics"], { stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  for (const stream of [promtool.stdout, promtool.stderr]) stream.on("data", (bytes) => { said += bytes; });
  promtool.stdin.end(text);
  const [code] = await once(promtool, "close");
  assert.deepEqual([code, said], [0, ""]);
});

for (const protocol of ["OpenMetricsText1.0.0", "PrometheusText0.0.4"]) {
  test(`Prometheus reads the metrics as ${protocol}`, async (context) => {
    const { admin, folder } = await served(context);
    // Versions before 2.49 know no `scrape_protocols`: they ask for OpenMetrics first, and for the other behind a proxy that says so.
    const target = protocol.startsWith("Open") ? admin : await withoutOpenMetrics(context, admin);
    const port = await freePort();
    const config = join(folder, "prometheus.yml");
    writeFileSync(config, `scrape_configs:\n- job_name: onehop\n  scrape_interval: 1s\n  static_configs:\n  - targets: ["127.0.0.1:${target}"]\n`);
    const words = [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=127.0.0.1:${port}`];
    const prometheus = spawn("prometheus", words, { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    prometheus.stderr.on("data", (bytes) => { said = (said + bytes).slice(-10_000); });
    const ended = once(prometheus, "exit");
    context.after(async () => {
      prometheus.kill("SIGKILL");
      await ended;
    });
    const begun = Date.now();
    const seen = async (query) => {
      if (!(await accepts(port))) return undefined;
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`);
      return response.ok ? Number((await response.json()).data?.result?.[0]?.value?.[1]) : undefined;
    };
    const until = async (query, fits) => {
      for (;;) {
        const value = await seen(query);
        if (fits(value)) return;
        assert.ok(prometheus.exitCode === null && Date.now() - begun < WITHIN_MS, `${query} is ${value}\n${said}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    await until('up{job="onehop"}', (value) => value === 1);
    await until("sum(onehop_requests_total)", (value) => value === 3);
    await until('histogram_quantile(0.99, sum by (le) (onehop_request_duration_seconds_bucket))', (value) => value > 0);
  });
}

/** A server with three requests behind it. */
async function served(context) {
  const folder = workFolder(context);
  const admin = await freePort();
  const text = `{\n\tadmin 127.0.0.1:${admin}\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n`;
  const server = await startOnehop(context, { folder, text });
  for (let count = 0; count < 3; count += 1) await fetch(server.origin.replace("localhost", "127.0.0.1"));
  return { admin, folder };
}

/** A port at which the same metrics are read by a client that does not ask for OpenMetrics. */
async function withoutOpenMetrics(context, admin) {
  const port = await freePort();
  const text = `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${admin} {\n\t\theader_up Accept text/plain\n\t\theader_up Host 127.0.0.1:${admin}\n\t}\n}\n`;
  await startOnehop(context, { folder: workFolder(context), text });
  return port;
}
