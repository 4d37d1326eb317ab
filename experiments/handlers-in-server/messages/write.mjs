import { written } from "../answers.mjs";
import { store } from "./store.mjs";

export function handler(message, finished) {
  const { key, value } = message.data;
  store.write(key, value);
  finished({ answer: written(key, value) });
}
