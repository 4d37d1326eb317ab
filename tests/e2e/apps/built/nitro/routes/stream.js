export default defineEventHandler((event) => {
  const events = createEventStream(event);
  (async () => {
    for (const word of ["one", "two", "three"]) await events.push(word);
    await events.close();
  })();
  return events.send();
});
