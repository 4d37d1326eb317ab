// tRPC's standalone adapter, as its documentation has it; one procedure streams.

import { initTRPC, TRPCError } from "@trpc/server";
import { createHTTPServer } from "@trpc/server/adapters/standalone";
import { z } from "zod";

const t = initTRPC.create({ isDev: false });

const router = t.router({
  hello: t.procedure.input(z.string().nullish()).query(({ input }) => `Hello ${input ?? "World"}!`),
  add: t.procedure.input(z.object({ name: z.string() })).mutation(({ input }) => ({ added: input.name })),
  refused: t.procedure.query(() => {
    throw new TRPCError({ code: "FORBIDDEN", message: "not you" });
  }),
  count: t.procedure.subscription(async function* () {
    for (let number = 0; number < 3; number += 1) yield number;
  }),
});

createHTTPServer({ router }).listen(Number(process.env.PORT || 2022));
