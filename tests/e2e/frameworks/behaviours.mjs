// How requests end otherwise than well, and in which order everybody hears of it. A case says what the client does;
// the script says what the application does, and its log what it saw.

import { scripted } from './cases.mjs';
import { bytesOf } from './wire.mjs';

const MIB = 1 << 20;
/** Answers that do not come are not waited for long. */
const NEVER_MS = 1_000;
const ALL = 'req,res,socket';
const BYTES_TYPE = ['Content-Type', 'application/octet-stream'];

let number = 0;

/** A script's request under a name of its own. */
function named(steps, options = {}) {
  number += 1;
  const id = `case-${number}`;
  const { watch = ALL, fields = [], ...rest } = options;
  return { id, request: scripted(steps, { ...rest, fields: [['X-Log', id], ['X-Watch', watch], ...fields] }) };
}

/** Asked, answered, and the client goes: the usual end. */
function answered(steps, options = {}) {
  const { until = 'res close', ...rest } = options;
  return async (client) => {
    const { id, request } = named(steps, rest);
    const wire = await client.open();
    wire.patience = NEVER_MS;
    wire.write(bytesOf(request));
    const answer = await wire.answer(request.method);
    const beforeLeaving = await client.log(id, until);
    wire.destroy();
    return { answer: told(answer), ...beforeLeaving };
  };
}

/** The client leaves when the application says that it has begun. */
function left(steps, how, options = {}) {
  const { sent = (bytes) => bytes, until = 'over', ...rest } = options;
  return async (client) => {
    const { id, request } = named([...steps, ['note', 'over']], rest);
    const wire = await client.open();
    wire.write(sent(bytesOf(request)));
    await client.log(id, 'begun');
    wire[how]();
    return client.log(id, until);
  };
}

/** What of an answer is looked at here; the rest is compared elsewhere. */
const told = ({ status, end, body }) => ({ status, end, bytes: body.length, text: body.length < 200 ? body.toString('latin1') : undefined });

const UPLOAD = { method: 'POST', fields: [BYTES_TYPE, ['Content-Length', '1000']] };
const halfSent = (bytes) => Buffer.concat([bytes, Buffer.alloc(500, 'x')]);
const UPLOAD_CHUNKS = { method: 'POST', fields: [BYTES_TYPE, ['Transfer-Encoding', 'chunked']] };
const halfChunks = (bytes) => Buffer.concat([bytes, Buffer.from('5\r\nhello\r\n')]);
const SMALL = { method: 'POST', fields: [BYTES_TYPE], body: 'a body' };
const LARGE = { method: 'POST', fields: [BYTES_TYPE], body: Buffer.alloc(2 * MIB, 'y') };

/** The usual ways through. */
const ORDER = {
  'an answer at once': answered([['end', 'x']]),
  'an answer later': answered([['pause', 5], ['end', 'x']]),
  'an answer in pieces': answered([['write', 'a'], ['pause', 3], ['write', 'b'], ['pause', 3], ['end']]),
  'an answer without a body': answered([['writeHead', 204], ['end']]),
  'an answer to HEAD': answered([['end', 'x']], { method: 'HEAD' }),
  'an answer of unchanged': answered([['writeHead', 304], ['end']]),
  'a body that is read': answered([['read'], ['end', 'x']], SMALL),
  'a large body that is read': answered([['read'], ['end', 'x']], LARGE),
  'a body that is read after the answer': answered([['end', 'x'], ['try', 'read']], { ...SMALL }),
  'a body that is not read': answered([['end', 'x']], SMALL),
  'a body that is not read, and an answer later': answered([['pause', 5], ['end', 'x']], SMALL),
  'a large body that is not read': answered([['end', 'x']], LARGE),
  'a large body that is half read': answered([['take', 100_000], ['end', 'x']], LARGE),
  'a body in chunks': answered([['read'], ['end', 'x']], { method: 'POST', fields: [BYTES_TYPE], chunks: ['a', 'bc'] }),
  'an empty body': answered([['read'], ['end', 'x']], { method: 'POST', fields: [BYTES_TYPE], body: '' }),
  'a body that is echoed': answered([['echo']], SMALL),
  'a source that is piped': answered([['pour', 200_000]]),
  'a source that fails': answered([['pour', 200_000, 'fails'], ['pause', 30], ['destroy', 'res']]),
  'what the objects say before and after': answered([['state'], ['writeHead', 200], ['state'], ['write', 'a'], ['state'], ['end', 'b'], ['state'], ['wait', 'res', 'close'], ['state']]),
  'what the objects say of a body': answered([['state'], ['read'], ['state'], ['end', 'b'], ['wait', 'res', 'close'], ['state']], SMALL),
  'callbacks of write and end': answered([['callbacks', 'a', 'b']]),
  'a finished answer that is listened to': answered([['end', 'x'], ['on', 'res', 'finish'], ['on', 'res', 'close'], ['on', 'req', 'close']]),
  'connection close': answered([['setHeader', 'Connection', 'close'], ['end', 'x']]),
};

/** What an application does wrong without dying of it. */
const WRONG = {
  'write after end': answered([['end', 'x'], ['try', 'write', 'y']]),
  'write after the answer is over': answered([['end', 'x'], ['wait', 'res', 'close'], ['try', 'write', 'y'], ['state']]),
  'end twice': answered([['end', 'x'], ['try', 'end', 'y'], ['try', 'end']]),
  'end after the answer is over': answered([['end', 'x'], ['wait', 'res', 'close'], ['try', 'end', 'y'], ['state']]),
  'nothing that can be written': answered([['try', 'write', null], ['try', 'write', 7], ['end', 'x']]),
  'a head after the end': answered([['end', 'x'], ['try', 'writeHead', 200], ['try', 'setHeader', 'X-A', 'b']]),
  'destroy of the request': answered([['destroy', 'req'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the request with an error': answered([['destroy', 'req', 'broken'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the request with a body': answered([['destroy', 'req', 'broken'], ['wait', 'res', 'close'], ['state']], { ...LARGE }),
  'destroy of the response': answered([['destroy', 'res'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the response with an error': answered([['destroy', 'res', 'broken'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the response after the head': answered([['write', 'a'], ['pause', 5], ['destroy', 'res', 'broken'], ['wait', 'res', 'close'], ['try', 'write', 'b'], ['state']]),
  'destroy of the response after the end': answered([['end', 'a'], ['destroy', 'res'], ['state']]),
  'destroy of the socket': answered([['destroy', 'socket'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the socket with an error': answered([['destroy', 'socket', 'broken'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the socket after the head': answered([['write', 'a'], ['pause', 5], ['destroy', 'socket'], ['wait', 'res', 'close'], ['state']]),
  'destroy of the socket after the end': answered([['end', 'a'], ['wait', 'res', 'finish'], ['destroy', 'socket'], ['pause', 5], ['state']]),
  'end of the socket': answered([['call', 'socket', 'end'], ['wait', 'res', 'close'], ['state']]),
  'a timeout of the response': answered([['timeout', 'res', 30, 'listen'], ['pause', 200], ['end', 'x']]),
  'a timeout of the response that nobody hears': answered([['timeout', 'res', 30, 'plain'], ['wait', 'res', 'close'], ['state']]),
  'a timeout of the request': answered([['timeout', 'req', 30, 'listen'], ['pause', 200], ['end', 'x']]),
  'a timeout of the socket': answered([['timeout', 'socket', 30, 'listen'], ['pause', 200], ['end', 'x']]),
  'a timeout of the socket that is taken back': answered([['timeout', 'socket', 20, 'listen'], ['timeout', 'socket', 0, 'plain'], ['pause', 100], ['end', 'x']]),
  'a timeout of the server': answered([['timeout', 'server', 30, 'listen'], ['end', 'set']], { until: 'res close' }),
  'a timeout that the server has set': answered([['pause', 200], ['end', 'x']]),
  'a timeout that the server has taken back': answered([['call', 'server', 'setTimeout', 0], ['call', 'server', 'removeAllListeners', 'timeout'], ['end', 'x']]),
};

/** The client leaves. */
const LEFT = {};
// A client that only ends its side after a whole request still gets its answer: it has left when it resets.
Object.assign(LEFT, {
  'reset while it waits': left([['note', 'begun'], ['wait', 'res', 'close'], ['state'], ['try', 'write', 'x'], ['try', 'end'], ['state']], 'reset'),
  'reset during an answer': left([['write', 'a'], ['note', 'begun'], ['wait', 'res', 'close'], ['state'], ['try', 'write', 'b'], ['try', 'end', 'c'], ['pause', 5], ['state']], 'reset'),
});
for (const how of ['destroy', 'reset']) {
  Object.assign(LEFT, {
    [`${how} during a body that is read`]: left([['note', 'begun'], ['try', 'read'], ['pause', 5], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during a body that is half read`]: left([['take', 100], ['note', 'begun'], ['wait', 'res', 'close'], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during a body that nobody reads`]: left([['note', 'begun'], ['wait', 'res', 'close'], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during a body in chunks`]: left([['note', 'begun'], ['try', 'read'], ['pause', 5], ['state']], how, { ...UPLOAD_CHUNKS, sent: halfChunks }),
    [`${how} during a body after the answer`]: left([['end', 'x'], ['note', 'begun'], ['wait', 'req', 'close'], ['pause', 5], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during a body that is read after the answer`]: left([['end', 'x'], ['note', 'begun'], ['try', 'read'], ['pause', 5], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during an echo`]: left([['note', 'begun'], ['echo'], ['wait', 'res', 'close'], ['state']], how, { ...UPLOAD, sent: halfSent }),
    [`${how} during a source that is piped`]: left([['pour', 64 * MIB], ['note', 'begun'], ['wait', 'res', 'close'], ['state']], how),
    [`${how} and nobody listens for errors`]: left([['note', 'begun'], ['wait', 'res', 'close'], ['state']], how, { ...UPLOAD, sent: halfSent, watch: 'req,res,silent' }),
  });
}

/** Clients and applications that are slow. */
const SLOW = {
  'a client that takes its time with 64 MiB': slowReader(64 * MIB, [['fill', 64 * MIB], ['end']]),
  'a client that takes its time with a source': slowReader(32 * MIB, [['pour', 32 * MIB]]),
  'a client that leaves 64 MiB': async (client) => {
    const { id, request } = named([['note', 'begun'], ['fill', 64 * MIB], ['note', 'over']]);
    const wire = await client.open();
    wire.hold();
    wire.write(bytesOf(request));
    await client.log(id, 'begun');
    wire.destroy();
    return client.log(id, 'over');
  },
  'a client that sends slowly': async (client) => {
    const { id, request } = named([['read'], ['end', 'x']], { method: 'POST', fields: [BYTES_TYPE, ['Content-Length', '200']] });
    const wire = await client.open();
    wire.write(bytesOf(request));
    for (let count = 0; count < 20; count += 1) {
      await new Promise((resolve) => setTimeout(resolve, 4));
      wire.write(Buffer.alloc(10, 'z'));
    }
    const answer = await wire.answer();
    const log = await client.log(id, 'res close');
    wire.destroy();
    return { answer: told(answer), ...log };
  },
  'an application that takes its time with 8 MiB': async (client) => {
    const { id, request } = named([['readSlowly'], ['end', 'x']], { method: 'POST', fields: [BYTES_TYPE], body: Buffer.alloc(8 * MIB, 'w'), watch: 'req,res' });
    const wire = await client.open();
    wire.write(bytesOf(request));
    const answer = await wire.answer();
    const log = await client.log(id, 'res close');
    wire.destroy();
    return { answer: told(answer), ...log };
  },
  'a client that closes its half': async (client) => {
    const { id, request } = named([['pause', 20], ['end', 'x']]);
    const wire = await client.open();
    wire.write(bytesOf(request));
    wire.finish();
    const answer = await wire.answer();
    return { answer: told(answer), ...(await client.log(id, 'res close')) };
  },
  'three requests in one write': async (client) => {
    const all = [named([['pause', 20], ['end', 'a']]), named([['end', 'b']]), named([['write', 'c'], ['pause', 5], ['end']])].map((one) => ({ ...one, request: { ...one.request, fields: one.request.fields.map(([name, value]) => [name, name === 'X-Watch' ? 'req,res' : value]) } }));
    const wire = await client.open();
    wire.write(Buffer.concat(all.map(({ request }) => bytesOf(request))));
    const seen = {};
    for (const [place] of all.entries()) seen[`answer${place}`] = told(await wire.answer());
    for (const [place, { id }] of all.entries()) seen[`request${place}`] = await client.log(id, 'res close');
    wire.destroy();
    return seen;
  },
};

function slowReader(bytes, steps) {
  return async (client) => {
    const { id, request } = named([...steps, ['note', 'over']], { watch: 'req,res' });
    const wire = await client.open();
    const before = await client.memory();
    wire.hold();
    wire.write(bytesOf(request));
    await new Promise((resolve) => setTimeout(resolve, 400));
    const grown = (await client.memory()) - before;
    wire.hold(false);
    const answer = await wire.answer();
    const log = await client.log(id, 'res close');
    wire.destroy();
    return { answer: told(answer), isWhole: answer.body.length === bytes, memory: grown < 24 * MIB ? 'bounded' : grown, ...log };
  };
}

/** What ends the process of Node alone, and what does not. */
export const DEATHS = {
  'an error that is thrown at once': [['throw']],
  'an error that is thrown after a promise': [['promise'], ['throw']],
  'an error that is thrown after the head': [['write', 'a'], ['pause', 10], ['throw']],
  'an error that is thrown from a timer': [['throwLater'], ['pause', 50], ['end', 'never']],
  'a rejected promise that nobody handles': [['rejectLater'], ['pause', 50], ['end', 'never']],
  'an error of the response that nobody hears': [['end', 'x'], ['write', 'y']],
  'an error of the request that nobody hears': [['destroy', 'req', 'broken']],
  'an end of the process': [['exit', 3]],
  'an end of the process after the answer': [['end', 'x'], ['wait', 'res', 'close'], ['exit', 0]],
  'nothing': [['end', 'x']],
};

/** Every other behaviour by its name. */
export const BEHAVIOURS = { ...ORDER, ...WRONG, ...LEFT, ...SLOW };
