"use client";

import { useActionState } from "react";
import { greet } from "./actions";

export default function Form() {
  const [state, action, isPending] = useActionState(greet, { text: "" });
  return (
    <form action={action}>
      <input name="name" placeholder="name" />
      <button type="submit" disabled={isPending}>
        Send
      </button>
      <output>{state.text}</output>
    </form>
  );
}
