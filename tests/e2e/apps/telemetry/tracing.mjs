// The same for an application of ES modules: by --import, with the loader's hook beside it.

import { ExpressInstrumentation } from "@opentelemetry/instrumentation-express";
import { HttpInstrumentation } from "@opentelemetry/instrumentation-http";
import { NodeSDK, tracing } from "@opentelemetry/sdk-node";
import exporter from "./line-exporter.cjs";

const sdk = new NodeSDK({
  spanProcessors: [new tracing.SimpleSpanProcessor(new exporter.LineExporter())],
  instrumentations: [new HttpInstrumentation(), new ExpressInstrumentation()],
});
sdk.start();

process.on("SIGTERM", () => sdk.shutdown().finally(() => process.exit(0)));
