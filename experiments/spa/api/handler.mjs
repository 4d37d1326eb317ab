/** The API as a fetch handler: onehop calls it directly. */
import { answer } from './codes.mjs';

export default {
  fetch(request) {
    const [status, value] = answer(request.method, new URL(request.url).pathname);
    return Response.json(value, { status });
  },
};
