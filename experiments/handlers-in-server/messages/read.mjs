import { store } from "./store.mjs";

export function handler(message, finished) {
  finished({ answer: store.read(message.data.key) });
}
