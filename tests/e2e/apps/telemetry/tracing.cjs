// OpenTelemetry as its documentation loads it: before the application, by --require. Each span is a line.

const { NodeSDK, tracing } = require("@opentelemetry/sdk-node");
const { HttpInstrumentation } = require("@opentelemetry/instrumentation-http");
const { ExpressInstrumentation } = require("@opentelemetry/instrumentation-express");
const { LineExporter } = require("./line-exporter.cjs");

const sdk = new NodeSDK({
  spanProcessors: [new tracing.SimpleSpanProcessor(new LineExporter())],
  instrumentations: [new HttpInstrumentation(), new ExpressInstrumentation()],
});
sdk.start();

process.on("SIGTERM", () => sdk.shutdown().finally(() => process.exit(0)));
