import { useRoute } from "preact-iso";
import { useAnswer } from "./answer.js";

export default function Code() {
  const { params } = useRoute();
  const answer = useAnswer(`/api/codes/${encodeURIComponent(params.code)}`);
  if (!answer) return <p role="status">Loading</p>;
  if (answer.problem) return <p role="alert">{answer.problem}</p>;
  const { code, name, text, source } = answer.value;
  return (
    <article>
      <h1>
        <b>{code}</b> {name}
      </h1>
      <p>{text}</p>
      <dl>
        <dt>Defined in</dt>
        <dd>{source}</dd>
      </dl>
      <p>
        <a href="/">All status codes</a>
      </p>
    </article>
  );
}
