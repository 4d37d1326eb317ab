import { useState } from "preact/hooks";
import { fields } from "../fields.js";

export default function Items() {
  const [wanted, setWanted] = useState("");
  const needle = wanted.trim().toLowerCase();
  const found = fields.filter(({ name, text }) => `${name} ${text}`.toLowerCase().includes(needle));
  return (
    <>
      <h1>A field guide to HTTP</h1>
      <p class="lead">The header fields that a web server meets most, with what each is for.</p>
      <label class="search">
        Find a field
        <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </label>
      <p role="status">{found.length === 1 ? "1 field" : `${found.length} fields`}</p>
      <ul class="fields">
        {found.map(({ id, name, text }) => (
          <li key={id}>
            <a href={`/items/${id}`}>{name}</a>
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
