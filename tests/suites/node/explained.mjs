/**
 * Tests that pass on Node alone and fail with their server under onehop, each with its reason. An entry that no test
 * needs any more fails the run. A defect is no reason. `isNotRun`: its failure would keep others from running, which
 * the suite's own cleaning up does not expect.
 */

const EARLY_PROTOCOL = 'the client speaks the new protocol before it has been answered 101; onehop passes on what follows the switch only '
  + 'after it (RFC 9110 section 7.8)';
const MALFORMED_CHUNKS = 'the client sends chunks that are none; onehop refuses them itself once their line is complete (RFC 9112 section 7.1), and '
  + 'the application sees a client that is gone, not an error of a parser on its socket';
const CONNECT = 'CONNECT asks for a tunnel (RFC 9110 section 9.3.6): onehop refuses it with 405, applications are not asked';
const PIPELINED = 'two requests of one connection are to be open at the same time; onehop hands over a pipelined request when the one before it has been '
  + 'answered, as RFC 9112 section 9.3.2 allows';
const FORWARDED = 'X-Forwarded-* that a client sends are dropped (docs/onehopfile.md, app): anybody could write them';
const MAPPED = 'the client\'s IPv4 address is 127.0.0.1 under onehop also where the server says that it listens on "::", whose sockets would have '
  + '::ffff:127.0.0.1';
const SOCKET_SAYS = 'X-Forwarded-Proto is the scheme of the client\'s connection; the test makes its socket claim another one';
const PATHS = 'a path is read once, before any route: dot segments are resolved, and what can be read in two ways (`//` at its beginning, encoded dot '
  + 'segments) is refused with 400 (docs/onehopfile.md, "How paths are read")';
const BAD_HOST = 'a Host field that is no host is refused with 400 (RFC 9112 section 3.2)';
const BAD_TARGET = 'a request target with characters that no URI has is refused with 400 (RFC 9112 section 3.2)';
const ABSOLUTE_FORM = 'a target in absolute form whose host is not that of the Host field is refused with 400: which one is meant is how requests '
  + 'are smuggled (RFC 9112 section 3.2.2)';
const NO_REQUEST = 'a connection without a request: the application\'s server hears of connections with their first request';
const RESET = 'resetAndDestroy: what the client sees is the end of its connection, not a reset';
const HANDS_ON = 'Connection is between client and onehop (RFC 9110 section 7.6.1): it does not reach the application';
const REASON = 'a status has the reason phrase that onehop gives it (RFC 9112 section 4: a client ignores it)';
const NO_FINAL_STATUS = '1xx is no status of an answer (RFC 9110 section 15.2, and the test itself says so); onehop answers 500';
const UNKNOWN_METHOD = 'a method that Node\'s parser does not know is passed on (RFC 9110 section 9.1: methods can be added), and the application answers 404';
const HEAD_SIZE = 'how long a head may be is onehop\'s bound, above Node\'s 16 KiB';
const CONNECTION = 'how often a connection is used, when it closes and what Connection and Keep-Alive say is onehop\'s (RFC 9110 section 7.6.1)';
const CLIENT_ERROR = 'a request that is malformed or does not come in time is refused by onehop: no \'clientError\' reaches the application';
const CLOSED = 'the client destroys its connection, which sends FIN and no reset: that is a half-close, and the request is served (RFC 9112 section 9.6); a reset is seen at once';
const DATE = 'the first field of an answer is the Date that onehop adds';

/** @param {string} suite @param {string} why @param {(string|RegExp)[]} titles */
const all = (suite, why, ...titles) => titles.map((title) => ({ suite, title, why }));

/** @type {import('./compare.mjs').Explanation[]} */
export const EXPLAINED = [
  ...all('on-finished', PIPELINED,
    'onFinished(res, listener) when requests pipelined should fire for each request',
    'isFinished(res) when requests pipelined should have correct state when socket shared',
    'isFinished(res) when requests pipelined should handle aborted requests',
    'onFinished(req, listener) when requests pipelined should handle socket errors'),
  ...all('on-finished', MALFORMED_CHUNKS,
    /(?:response|request) errors should (?:fire with error|include the (?:response|request) object|return true)$/),
  ...all('on-finished', CLOSED,
    /(?:response|request) aborts should (?:execute the callback|return true)$/),
  ...all('on-finished', CONNECT, / when CONNECT method should /),
  ...all('on-finished', EARLY_PROTOCOL, / when Upgrade request should (?!be true immediately)/),
  ...all('express', FORWARDED,
    /X-Forwarded-Host is enabled|"trust proxy" is enabled (?:when .* )?should (?:respect X-Forwarded|use the first value|remove OWS|strip port)/,
    /req \.ips? when X-Forwarded-For is present when "trust proxy" is enabled should/,
    /req \.secure when X-Forwarded-Proto is present .*should (?:return true|respect)/,
    'req .subdomains with trusted X-Forwarded-Host should return an array'),
  ...all('express', MAPPED,
    'when "trust proxy" is disabled should return the remote address', 'X-Forwarded-For is not present should return the remote address'),
  ...all('express', SOCKET_SAYS, 'req .protocol when "trust proxy" is enabled should default to the socket addr if X-Forwarded-Proto not present'),
  ...all('express', PATHS,
    'downloads GET /files/../index.js should respond with 403',
    'express.static() basic operations should not choke on auth-looking URL',
    'express.static() fallthrough when true should fall-through when traversing past root',
    'express.static() fallthrough when false should 403 when traversing past root',
    'express.static() redirect should not redirect to protocol-relative locations',
    /express\.static\(\) when traversing past root should (?:catch urlencoded|not allow root path)/,
    'express.static() when mounted should not choke on auth-looking URL'),
  ...all('express', CLOSED, /res \.send[Ff]ile\(path, fn\) should invoke the callback when client (?:already )?aborted/,
    /res \.send[Ff]ile\(path, fn\) should invoke the callback when client aborts/),
  ...all('express', BAD_HOST, 'res when accepting html should escape the url', 'res when accepting text should encode the url'),
  ...all('connect', ABSOLUTE_FORM, /test\/fqdn\.js: app\.use\(\) (?:should not obscure FQDNs|with a connect app should adjust FQDN req\.url)/),
  ...all('connect', BAD_TARGET, 'app 404 handler should escape the 404 response body'),
  ...all('finalhandler', BAD_TARGET, '404 response should escape method and pathname characters'),
  ...all('finalhandler', ABSOLUTE_FORM, '404 response should include pathname only'),
  ...all('morgan', NO_FINAL_STATUS, 'morgan() formats dev should not color 1xx'),
  ...all('http-proxy', FORWARDED, 'using the web-incoming passes should make the request on pipe and finish it'),
  ...all('http-proxy', BAD_HOST, 'using the ws-incoming passes should pass all set-cookie headers to client'),
  ...all('node-fetch', REASON, 'should handle response with no status text'),
  ...all('node-fetch', HANDS_ON,
    'should send request with connection keep-alive if agent is provided', 'should allow a function supplying the agent'),
  ...all('fastify', UNKNOWN_METHOD, 'test/404s.test.js: Unknown method'),
  ...all('fastify', PIPELINED, /test\/close-pipelining\.test\.js: /),
  ...all('fastify', HEAD_SIZE, /test\/header-overflow\.test\.js: /),
  ...all('fastify', FORWARDED, /test\/trust-proxy\.test\.js: trust proxy/),
  ...all('fastify', CONNECTION,
    /max-requests-per-socket\.test\.js: maxRequestsPerSocket(?: zero should behave same as null)?$/,
    'NOT continue to work after closing and return "connection: close" header - return503OnClosing: false'),
  ...all('fastify', CLIENT_ERROR,
    'requestTimeout should return 408', 'Should reply 400 on client error', 'Should set the response from client error handler',
    'non-numeric content-length is rejected before Fastify body parsing'),
  ...all('@fastify/express', FORWARDED, 'trust proxy protocol'),
  ...all('@fastify/middie', ABSOLUTE_FORM, /absolute-form (?:request )?targets cannot bypass /),
  ...all('@fastify/websocket', CLOSED, /Should not hijack reply for an? normal (?:http )?request /),
  ...all('ws', NO_REQUEST, 'WebSocketServer #close emits the \'close\' event after the server closes'),
  ...all('ws', RESET, 'WebSocket Events does not re-emit `net.Socket` errors'),
  {
    suite: 'ws',
    title: 'WebSocket Connection establishing fails if the Upgrade header field value cannot be read',
    why: `${DATE}; the test lets its client read one field`,
    isNotRun: true,
  },
];
