export default function About() {
  return (
    <>
      <h1>About this example</h1>
      <p class="lead">
        A single-page app as build tools make it today: one HTML page, scripts and styles with hashes in
        their names, chunks that are fetched when they are needed.
      </p>
      <h2>The whole configuration</h2>
      <pre tabindex="0">
        <code>{`http://localhost:8080 {\n\tspa ./dist\n\tlog\n}`}</code>
      </pre>
      <h2>Try it</h2>
      <ol>
        <li>Reload this page: its address exists only in the app, and the server still answers it.</li>
        <li>
          Open <a href="/assets/gone-00000000.js" target="_blank" rel="noopener">a chunk that does not exist</a>: that
          is a 404, not this app in disguise.
        </li>
        <li>Change something and run <code>npm run build</code>: the next load has it.</li>
      </ol>
    </>
  );
}
