// The Express application as people run it: on a port of its own.

import { application } from "./application.mjs";

application().listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
