// Where an application's answers below onehop differ from those that Node alone gives, each with its reason. An entry
// says where it applies (`app`, `version`, `over`, `case`, `what`: a text, a list or a pattern; `if`: a function of the
// difference). Entries marked `open` are no intention but work to do.

/** What onehop adds, as a proxy in front would. */
const FORWARDED = /^x-forwarded-(?:for|proto|host)$/i;
const withoutForwarded = (raw) => raw.filter((_, place) => !FORWARDED.test(raw[place - (place % 2)]));

/** Fields in any order, with names in any case; without those that HTTP/2, or Node's client of it, sends once. */
const fieldsIn = (raw) => withoutForwarded(raw).flatMap((name, place, raw) => (place % 2 > 0 || /^(cookie|user-agent)$/i.test(name) ? [] : [`${name.toLowerCase()}: ${raw[place + 1]}`])).sort().join();

export const DIFFERENCES = [
  // Who asks.
  { reason: 'the address of an IPv4 client is told as such, even to an application that listens on `::`', what: /^body\..*(remoteAddress|ip|address)$/, if: ({ alone, below }) => alone === '::ffff:127.0.0.1' && below === '127.0.0.1' },
  { reason: 'so is its family', what: /^body\.(socket\.remoteFamily|family)$/, if: ({ alone, below }) => alone === 'IPv6' && below === 'IPv4' },
  { reason: 'what is computed from that address', case: /^who asks/, what: ['field content-length', 'field etag'] },
  { reason: 'the application listens where onehop has it listen', what: 'body.socket.localAddress' },

  { reason: 'the address, scheme and host of the client are told as a proxy in front would', what: /^body\.headers(?:Distinct)?\.x-forwarded-(?:for|proto|host)$/, if: ({ alone, below }) => alone === undefined && below !== undefined },
  { reason: 'they are among its fields', what: 'body.rawHeaders', if: ({ alone, below }) => JSON.stringify(withoutForwarded(below)) === JSON.stringify(alone) },

  // What a request says.
  { reason: 'a request for a whole URL reaches the application as one for the path (RFC 9112 section 3.2.2)', case: 'a request for a whole URL', what: /^body\.url$/ },
  { reason: 'whether the connection stays is the server\'s business', case: 'Connection: close of the client', what: ['body.headers.connection', 'body.headersDistinct.connection', 'body.rawHeaders', 'body.response.shouldKeepAlive'] },
  { reason: 'so is which trailers are announced: those that come are told', case: 'what a request with trailers says', what: ['body.headers.trailer', 'body.headersDistinct.trailer', 'body.rawHeaders'] },
  { reason: 'an expectation that nobody knows is ignored (RFC 9110 section 10.1.1 leaves it to servers)', case: 'another expectation', what: 'status', if: ({ alone, below }) => alone === 417 && below !== 417 },
  { reason: '`OPTIONS *` asks about the server itself, which answers (RFC 9110 section 9.3.7)', case: 'OPTIONS of everything', what: 'status', if: ({ below }) => below === 204 },
  { reason: 'a path that leads out of the root is refused before any application sees it', case: 'a path that climbs', what: 'status', if: ({ below }) => below === 400 },
  { reason: 'no answer waits for an earlier one of the same connection: each has its socket from the start', case: 'requests in one write', what: 'body.kinds.same', if: ({ alone, below }) => !alone && below },

  // What it says over HTTP/2.
  { reason: 'names of fields are in lower case (RFC 9113 section 8.2.1)', over: 'HTTP/2', what: ['body.rawHeaders', 'body.rawTrailers'], if: ({ alone, below }) => fieldsIn(alone) === fieldsIn(below) },
  { reason: 'the pieces of a cookie are joined (RFC 9113 section 8.2.3)', over: 'HTTP/2', what: 'body.headersDistinct.cookie', if: ({ alone, below }) => below[0] === alone.join('; ') },
  { reason: 'the client sends one of these fields', over: 'HTTP/2', what: 'body.headersDistinct.user-agent', if: ({ alone, below }) => below[0] === alone[0] },

  // The head of an answer.
  { reason: 'the reason of a status is the usual one, or none', what: 'reason' },
  { reason: 'the length is the server\'s own field, under the name as standards spell it', what: 'case of field content-length' },
  { reason: 'a 204 has no length (RFC 9110 section 8.6)', case: 'a 204 with a length', what: 'field content-length', if: ({ below }) => below === undefined },

  // Answers that contradict themselves.
  { reason: 'a length that is not true is mended where all is there at once', case: /^a length that is too (long|short)$/, what: ['end', 'body', 'field content-length'] },
  { reason: 'what was written before an error is sent: Node leaves it in a socket that stays corked', case: 'a strict length', what: ['status'], if: ({ alone, below }) => alone === 0 && below > 0 },
  { reason: 'an informational answer after the head is not put into the body', case: 'early hints after the head', what: ['end', 'body', 'status'] },
];
