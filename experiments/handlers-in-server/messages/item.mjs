import { item } from "../answers.mjs";

export function handler(message, finished) {
  finished({ answer: item(message.data.id) });
}
