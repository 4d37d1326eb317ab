import { useState } from "react";
import { Form, Link, useActionData } from "react-router";

export const meta = () => [{ title: "Planets" }];

export async function action({ request }) {
  return { greeting: `Good day, ${(await request.formData()).get("name")}.` };
}

export default function Home() {
  const [count, setCount] = useState(0);
  const data = useActionData();
  return (
    <main>
      <h1>Planets</h1>
      <button type="button" onClick={() => setCount(count + 1)}>
        pressed {count} times
      </button>
      <Link to="/planets/earth">Earth</Link>
      <Form method="post">
        <input name="name" placeholder="name" />
        <button type="submit">Send</button>
      </Form>
      <output>{data?.greeting}</output>
    </main>
  );
}
