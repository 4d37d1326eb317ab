export default function NotFound() {
  return (
    <>
      <h1>No such page</h1>
      <p class="lead">
        The server sent the app, as it should: only the app knows its routes, and this is none of them.
      </p>
      <p><a href="/">Back to the start</a></p>
    </>
  );
}
