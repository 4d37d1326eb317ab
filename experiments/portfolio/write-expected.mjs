/**
 * Writes what every variant has to answer into expected/. Run it after a change of content, templates or versions, look at
 * the difference, then take the new lengths into scenario.toml.
 */
import { writeFileSync } from 'node:fs';
import { blog, blogs, home, missing, version } from './site.mjs';

const bodies = {
  'home.html': home(),
  'blogs.html': blogs(),
  'blog.html': blog('conditional-requests'),
  'version.json': JSON.stringify({ version }),
  'missing.html': missing(),
};
for (const [name, body] of Object.entries(bodies)) {
  writeFileSync(new URL(`expected/${name}`, import.meta.url), body);
  console.log(`${name} ${Buffer.byteLength(body)}`);
}
