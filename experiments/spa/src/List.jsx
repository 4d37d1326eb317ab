import { useState } from "preact/hooks";
import { useAnswer } from "./answer.js";

export default function List() {
  const [wanted, setWanted] = useState("");
  const answer = useAnswer("/api/codes");
  if (!answer) return <p role="status">Loading</p>;
  if (answer.problem) return <p role="alert">{answer.problem}</p>;
  const needle = wanted.trim().toLowerCase();
  const found = answer.value.filter(({ code, name }) => `${code} ${name}`.toLowerCase().includes(needle));
  return (
    <>
      <h1>HTTP's status codes</h1>
      <label>
        Find a code
        <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </label>
      <p role="status">{found.length === 1 ? "1 code" : `${found.length} codes`}</p>
      <ul class="codes">
        {found.map(({ code, name }) => (
          <li key={code}>
            <b>{code}</b>
            <a href={`/codes/${code}`}>{name}</a>
          </li>
        ))}
      </ul>
    </>
  );
}
