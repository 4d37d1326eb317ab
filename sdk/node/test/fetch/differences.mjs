// What may differ between the platform's objects and ours, and why. Each entry must be needed where it applies. With
// `like`, both results must be equal once it has taken the allowed difference out of them.

const bun = () => process.versions.bun !== undefined;
const node = () => !bun();
const node20to22 = () => node() && Number(process.versions.node.split('.')[0]) < 24;
const node20 = () => node() && process.versions.node.startsWith('20.');
const everywhere = () => true;

/** The same characters in another order. @param {string} text */
const sorted = (text) => [...text].sort().join('');
/** Without a content type. @param {string} text */
const untyped = (text) => text.replace(/,?\["string content-type","[^"]*"\]/, '').replaceAll('[,', '[');
/** The class of an error alone. @param {string} text */
const errorClass = (text) => text.split(':')[0];

/** @type {{ where: () => boolean, what: RegExp, why: string, like?: (text: string) => string }[]} */
export const differences = [
  {
    where: everywhere,
    what: /^w\.inspect\(w\.request|^inspecting (request )?headers$/,
    why: 'Node shows names as they were written, ours in lower case; Bun shows nothing. Only for the eye.',
    like: (text) => (bun() ? '' : sorted(text.toLowerCase())),
  },
  {
    where: everywhere,
    what: /: \{ const get = h\.get; return get\('a'\); \}$/,
    why: 'A method without its object: a TypeError with the text of the engine.',
    like: errorClass,
  },
  {
    where: everywhere,
    what: /^Response\((|'x')\)$/,
    why: 'A class called without new: the class is declared under another name on Node, on Bun it is no class.',
    like: errorClass,
  },
  {
    where: node,
    what: /^Response\.prototype\.(status|text\(\))$/,
    why: 'Asking the prototype itself: a TypeError with another text.',
    like: errorClass,
  },
  {
    where: node,
    what: /\{ headers: {1,2}\{\} \}\) \(40\)$/,
    why: 'Node takes members of a record that are not enumerable, the standard (Web IDL, record) does not.',
  },
  {
    where: node20to22,
    what: /^(Object\.create|new Proxy)\((w\.request\(\{\}\)|new Response\(\))(, \{\})?\)\.(url|status)$/,
    why: 'Attributes through a proxy or an heir of an object: Node 24 and Bun refuse it, ours everywhere.',
  },
  {
    where: () => !node20to22(),
    what: /^(Object\.create|new Proxy)\(w\.request\(\{\}\)(, \{\})?\)\.url$/,
    why: 'Refused on both, with the engine\'s text.',
    like: errorClass,
  },
  {
    where: () => !node20(),
    what: /structuredClone\((w\.request\(\{\}\)|h|new Response\('x'\))\)$/,
    why: 'Marking an object as one that cannot be cloned costs 80 ns each on Node 22 and 24; ours are cloned to {}, as on Node 20.',
  },
  // Bun from here on.
  {
    where: bun,
    what: /^method (x-own|patch)$/,
    why: 'Bun knows no other methods than its own and turns them into GET; ours keep what the client sent.',
  },
  {
    where: bun,
    what: /^\{ const one = w\.request\(post\); (await one\.text\(\); |one\.body\.getReader\(\); )?(new|return new) Request\(one\);/,
    why: 'Bun makes a request of a used request, and leaves the first one its body; ours keep to the standard.',
  },
  {
    where: bun,
    what: /^\{ const one = w\.request\(\{ \.\.\.post, authority: w\.echo \}\); await one\.text\(\); return fetch\(one\); \}$/,
    why: 'A TypeError with another text.',
    like: errorClass,
  },
  {
    where: bun,
    what: /^\(await fetch\(`http:\/\/\$\{w\.echo\}\/s`, \{ method: 'POST', body: w\.request\(post\)\.body/,
    why: 'Bun knows the length of a stream that it made itself; ours is any stream to it.',
    like: (text) => text.replace(/"(content-length|transfer-encoding)":"string \w+"/, ''),
  },
  {
    where: bun,
    what: /^(request|response) headers[\w ]*: (?!.*get = h)/,
    why: 'Bun puts Set-Cookie last and writes JSON in an order of its own; ours sort as the standard says.',
    like: sorted,
  },
  {
    where: bun,
    what: /^response headers: \{ const seen = \[\]; for \(const \[name\] of h\) \{ seen\.push\(name\); h\.delete\(name\); \} return seen; \}$/,
    why: 'What remains while fields are deleted depends on that order.',
  },
  {
    where: bun,
    what: /^request with (no body|an empty GET): .*json\(/,
    why: 'No JSON in nothing: the same class of error with another text.',
    like: errorClass,
  },
  {
    where: bun,
    what: /^request with .* in pieces: o\.blob\(\)$/,
    why: 'Bun forgets the type where the body is a stream.',
    like: (text) => text.replace(/"Blob":"[^"]*"/, ''),
  },
  {
    where: bun,
    what: /^request with text: .*getReader\(/,
    why: 'For Bun a body is used once it has a reader, and is no byte stream; ours are as on Node.',
  },
  {
    where: bun,
    what: /^request with text in pieces: \{ o\.body\?\.getReader\(\); return o\.text\(\); \}$/,
    why: 'A TypeError with another text.',
    like: errorClass,
  },
  {
    where: bun,
    what: /^new Response\(text with a (surrogate|mark)\): .*clone\(\)/,
    why: 'Bun decodes a clone as the standard says, but not the first; ours keeps the text in both.',
  },
  {
    where: bun,
    what: /^(new Response\(|Response\.json\(|status |a clone|\{ (const|class) )/,
    why: 'Bun gives a text its type only when its server answers; ours have it from the start, as the standard says.',
    like: untyped,
  },
  {
    where: bun,
    what: /^new Response\(''\): o\.blob\(\)$/,
    why: 'So does a text of no length.',
    like: (text) => text.replace(/"Blob":"[^"]*"/, ''),
  },
  {
    where: bun,
    what: /^Response\.json\(data 14\)$/,
    why: 'A TypeError with another text.',
    like: errorClass,
  },
  {
    where: bun,
    what: /: inspected$/,
    why: 'Bun shows nothing of its own to util.inspect.',
  },
  {
    where: bun,
    what: /^Response\.(json|redirect)\.length$/,
    why: 'Ours have the length that the standard and Node give them.',
  },
];
