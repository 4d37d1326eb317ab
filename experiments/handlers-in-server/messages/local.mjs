import { local } from "../answers.mjs";

export function handler(message, finished) {
  finished({ answer: local() });
}
