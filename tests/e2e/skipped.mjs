// A reporter for `node --test`: one line for each test that was skipped, with its file and the reason.

import { relative } from "node:path";

export default async function* skipped(events) {
  for await (const { type, data } of events) {
    if (!["test:pass", "test:fail"].includes(type) || data.skip === undefined) continue;
    const reason = typeof data.skip === "string" ? data.skip : "no reason given";
    yield `${relative(process.cwd(), data.file ?? "")}: ${data.name}: ${reason}\n`;
  }
}
