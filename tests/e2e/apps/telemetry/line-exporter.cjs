// Prints every span as one line of JSON.

exports.LineExporter = class {
  export(spans, done) {
    for (const span of spans) console.log(`span ${JSON.stringify(described(span))}`);
    done({ code: 0 });
  }
  async shutdown() {}
};

function described(span) {
  return {
    name: span.name,
    kind: span.kind,
    trace: span.spanContext().traceId,
    parent: (span.parentSpanContext ?? {}).spanId ?? null,
    isRemote: (span.parentSpanContext ?? {}).isRemote ?? false,
    id: span.spanContext().spanId,
    scope: span.instrumentationScope.name,
    status: span.status,
    ended: span.ended,
    attributes: span.attributes,
    events: span.events.map(({ name }) => name),
  };
}
