import { useEffect, useState } from "preact/hooks";
import hop from "../hop.svg";

/** Asks the server for this page again and tells what the answer was. */
function AskAgain() {
  const [answer, setAnswer] = useState(null);

  async function ask() {
    const begun = performance.now();
    const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
    const body = await response.arrayBuffer();
    setAnswer({
      status: response.status,
      bytes: body.byteLength,
      milliseconds: performance.now() - begun,
      etag: response.headers.get("etag") ?? "none",
      encoding: response.headers.get("content-encoding") ?? "as it is",
      caching: response.headers.get("cache-control") ?? "not said",
    });
  }

  useEffect(() => void ask(), []);

  return (
    <section aria-labelledby="ask">
      <h2 id="ask">What the server just said</h2>
      <p>This page asked for itself once more. The answer, as your browser saw it:</p>
      <dl class="facts" aria-live="polite">
        <dt>Status</dt>
        <dd>{answer?.status ?? "…"}</dd>
        <dt>Time</dt>
        <dd>{answer ? `${answer.milliseconds.toFixed(1)} ms` : "…"}</dd>
        <dt>Size</dt>
        <dd>{answer ? `${answer.bytes} bytes, encoding: ${answer.encoding}` : "…"}</dd>
        <dt>Caching</dt>
        <dd>{answer?.caching ?? "…"}</dd>
        <dt>ETag</dt>
        <dd><code>{answer?.etag ?? "…"}</code></dd>
      </dl>
      <button type="button" onClick={ask}>Ask again</button>
    </section>
  );
}

export default function Home() {
  return (
    <>
      <h1>Your app, one hop away</h1>
      <p class="lead">
        onehop read this app once, at its start: hashed it, compressed it, and holds it in memory. A
        request touches no disk, and nothing stands between your browser and the page.
      </p>
      <img class="picture" src={hop} alt="A browser, one arc, a page held in memory" width="640" height="180" />
      <ul class="cards">
        <li>
          <h2>Links go deep</h2>
          <p>
            <a href="/items/42">An address inside the app</a> works when typed, shared or reloaded. A
            script that is not there stays an honest 404.
          </p>
        </li>
        <li>
          <h2>Caches keep what may be kept</h2>
          <p>Files with a hash in their name are kept for a year. The page itself is asked for each time.</p>
        </li>
        <li>
          <h2>Deploying is copying</h2>
          <p>Build into the folder. The new version appears whole, once it is whole.</p>
        </li>
      </ul>
      <AskAgain />
    </>
  );
}
