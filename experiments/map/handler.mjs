// The map's data as a fetch handler.

import { answer } from "./points.mjs";

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/raw_data") return Response.json({ error: "there is only /raw_data" }, { status: 404 });
    const { status, value, headers } = await answer((name) => searchParams.get(name));
    return Response.json(value, { status, headers });
  },
};
