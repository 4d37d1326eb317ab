import { useRoute } from "preact-iso";
import { fields } from "../fields.js";
import NotFound from "./NotFound.jsx";

const direction = { request: "sent by the client", response: "sent by the server", both: "sent by either side" };

export default function Item() {
  const { params } = useRoute();
  const index = fields.findIndex(({ id }) => String(id) === params.id);
  if (index < 0) return <NotFound />;
  const { id, name, text, from, source } = fields[index];
  const before = fields[index - 1];
  const after = fields[index + 1];
  return (
    <article>
      <p class="number">Field {id} of {fields.length}</p>
      <h1>{name}</h1>
      <p class="lead">{text}</p>
      <dl class="facts">
        <dt>Direction</dt>
        <dd>{direction[from]}</dd>
        <dt>Defined in</dt>
        <dd>{source}</dd>
      </dl>
      <nav class="pager" aria-label="Neighbouring fields">
        {before ? <a href={`/items/${before.id}`} rel="prev">← {before.name}</a> : <span />}
        {after ? <a href={`/items/${after.id}`} rel="next">{after.name} →</a> : <span />}
      </nav>
    </article>
  );
}
