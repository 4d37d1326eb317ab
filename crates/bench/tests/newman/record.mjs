/**
 * Asks the collection beside this file with Newman, and writes down what was sent: sent.txt, which the test
 * newman.rs compares with what onehop sends. Needs the package `newman`:
 *
 *     npm install --no-save --prefix FOLDER newman && node record.mjs FOLDER
 *
 * Newman's own fields, and those that follow from the framing, are left out.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const OWN = new Set([
  ...['user-agent', 'accept', 'cache-control', 'postman-token', 'accept-encoding'],
  ...['host', 'connection', 'content-length', 'transfer-encoding'],
]);
const newman = createRequire(join(process.argv[2], 'node_modules/'))('newman');

const sent = [];
const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const fields = [];
    for (let index = 0; index < request.rawHeaders.length; index += 2) {
      const [name, value] = request.rawHeaders.slice(index, index + 2);
      if (!OWN.has(name.toLowerCase())) fields.push(`${name}: ${value}\n`);
    }
    let text = `${request.method} ${request.url}\n${fields.join('')}\n${Buffer.concat(chunks)}\n`;
    const boundary = /boundary=(\S+)/.exec(text)?.[1];
    if (boundary) text = text.replaceAll(boundary, 'BOUNDARY');
    sent.push(text.replaceAll('\r', '\\r'));
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  process.chdir(HERE);
  newman.run({
    collection: join(HERE, 'everything.postman_collection.json'),
    environment: join(HERE, 'an.postman_environment.json'),
    envVar: [
      { key: 'BASE', value: `http://127.0.0.1:${port}` },
      { key: 'PORT', value: `${port}` },
      { key: 'TYPED', value: 'typed' },
    ],
    workingDir: HERE,
  }, (error, summary) => {
    server.close();
    if (error) throw error;
    for (const { item, requestError } of summary.run.executions) if (requestError) console.error(item.name, requestError);
    writeFileSync(join(HERE, 'sent.txt'), sent.join('---\n'));
    console.log(`${sent.length} requests`);
  });
});
