// Where an application sees something else below onehop than by Node alone, each with its reason; the entries are as
// in differences.mjs.

const without = (list, ...lines) => JSON.stringify(list.filter((line) => !lines.includes(line)));

const sorted = (list) => JSON.stringify(list.map((line) => line.replace('"complete":true', '"complete":false')).sort());

export const DIFFERENCES = [
  // Sockets.
  {
    reason: 'a request has a socket of its own, which closes with it',
    what: /socket$/,
    if: ({ alone, below }) => without(alone, 'socket close', 'socket is open', 'socket is destroyed') === without(below, 'socket close', 'socket is open', 'socket is destroyed') && below.filter((line) => line === 'socket close').length === 1,
  },
  {
    reason: 'how a client ended its connection is the server\'s to know: the socket closes, without \'end\' and mostly without an error',
    case: /^(destroy|reset|a client that|end of the socket)/,
    what: /socket$/,
    if: ({ alone, below }) => without(alone, 'socket end', 'socket error ECONNRESET', 'socket error HPE_INVALID_EOF_STATE', 'socket close', 'socket is destroyed') === without(below, 'socket error ECONNRESET', 'socket close', 'socket is destroyed'),
  },

  {
    reason: 'a client that closes its sending side after a complete request gets its answer (RFC 9112 section 9.6); Node alone takes it for gone',
    case: 'a client that closes its half',
    what: /^seen\./,
    if: () => true,
  },

  // Ends of processes.
  { reason: 'a client whose request is lost with the process is told so with 502', what: ['seen.status', 'seen.end'], if: ({ alone, below }) => (alone === 0 && below === 502) || (alone === 'closed' && below === 'whole') },
  { reason: 'what a client still sends is read before its connection is closed, so that it is not reset', case: 'destroy of the request with a body', what: 'seen.answer.end', if: ({ alone, below }) => alone === 'reset' && below === 'closed' },

  {
    reason: 'what nobody reads of a body ends with the answer; by Node alone it hangs until the client is gone, and nobody is told',
    case: /during a body after the answer$/,
    what: 'seen.log',
    if: ({ below }) => below.at(-1) === 'over' && below.includes('req close'),
  },

  {
    reason: 'who still reads a body after the answer is told that the client left; by Node alone nobody is, and waits for ever',
    case: /during a body that is read after the answer$/,
    what: 'seen.log',
    if: ({ alone, below }) => !alone.includes('over') && below.includes('req aborted') && below.includes('read rejected ECONNRESET'),
  },
  {
    reason: 'a short body is there with its head, so that it may be complete before the application looks',
    case: ['a body that is read after the answer', 'what the objects say of a body'],
    what: 'seen.log',
    if: ({ alone, below }) => sorted(alone) === sorted(below),
  },

];
