/** What is known about a request besides what the client sent. The third argument of a handler. */
export interface Context {
  /** Keeps the worker alive until `promise` is settled; a rejection is logged. */
  waitUntil(promise: Promise<unknown>): void;
  /** The peer of the connection, never what a field claims; null on a Unix socket. */
  readonly client: { readonly address: string; readonly port: number } | null;
  /** 16 hexadecimal digits, the same as in the server's log. */
  readonly requestId: string;
  /** What is known about the connection's encryption; null without. */
  readonly tls: { readonly facts: string } | null;
}

/** The process's environment as it was when the application had been loaded. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A handler: the default export of an application, or its `fetch`. */
export type Handler = (request: Request, env: Environment, ctx: Context) => Response | Promise<Response>;

/** An application: `export default { fetch(request, env, ctx) { … } } satisfies Application`. */
export interface Application {
  fetch: Handler;
}

/** The worker's Response: the platform's interface at a fraction of its cost. The global one is the same. */
export declare const Response: typeof globalThis.Response;

export interface UpgradeOptions {
  /** What this server speaks; the first that the client offers is taken, none otherwise. */
  protocol?: string | readonly string[];
  /** Bytes of a message, at most. 1 MiB by default. */
  maxPayload?: number;
}

/**
 * Answers a request for a WebSocket: return `response`, use `socket` once it is open. Where the request is none,
 * `response` says so (400 or 426) and the socket closes at once.
 */
export declare function upgradeWebSocket(
  request: Request,
  options?: UpgradeOptions,
): { socket: ServerWebSocket; response: globalThis.Response };

/** A server's end of a WebSocket, with the platform's interface. `url` and `extensions` are empty. */
export type ServerWebSocket = WebSocket;

export interface SendFileOptions {
  /** 200 by default: the server then answers conditions and ranges of the request itself. */
  status?: number;
  headers?: HeadersInit;
  /** First byte that is sent; only with another status than 200. */
  offset?: number;
  /** Bytes that are sent; the rest by default. Only with another status than 200. */
  length?: number;
}

/** An answer whose body is a file that the server opens itself, below the folder that its configuration names. */
export declare function sendFile(path: string, options?: SendFileOptions): globalThis.Response;

/** The worker library's version, or null outside of a worker. */
export declare const version: string | null;

declare global {
  /** What a worker of onehop offers without an import; undefined anywhere else. */
  var onehop:
    | {
        Response: typeof globalThis.Response;
        upgradeWebSocket: typeof upgradeWebSocket;
        sendFile: typeof sendFile;
        version: string;
      }
    | undefined;
}
