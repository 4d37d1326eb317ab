// A stand-in for a database behind a pool of connections: each query holds one for a fixed time, and those that find
// none wait in the order in which they came, without a bound, as they do in the usual clients of PostgreSQL and MySQL.

const CONNECTIONS = 5;
const QUERY_MS = 20;

/** Five connections, 20 ms a query: 250 queries a second at most. */
export class Pool {
  #free = CONNECTIONS;
  #waiting = [];
  #first = 0;

  /** The one row that there is. */
  async query() {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise((resolve) => this.#waiting.push(resolve));
    await new Promise((resolve) => setTimeout(resolve, QUERY_MS));
    const next = this.#take();
    if (next) next();
    else this.#free += 1;
    return { rows: 1 };
  }

  /** Who waits longest. Taken places are dropped now and then: moving the others each time would cost more than a query. */
  #take() {
    const next = this.#waiting[this.#first];
    if (!next) return undefined;
    this.#waiting[this.#first] = undefined;
    this.#first += 1;
    if (this.#first * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    return next;
  }
}
