/**
 * Brings the suites and what they need into target/suites/node: sources from Debian's archive through apt (in folders of
 * its own, nothing of the machine is changed) and packages from npm. Everything is checked against a hash that stands in
 * suites.mjs or in package-lock.json. `node sources.mjs lock` renews that file.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SUITES, TOOLS } from './suites.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TARGET = process.env.ONEHOP_SUITES_TARGET ?? fileURLToPath(new URL('../../../target/suites/node', import.meta.url));
const LOCK = path.join(HERE, 'package-lock.json');
/** The releases in which Debian carries these versions. */
const RELEASES = 'bookworm trixie';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** A folder name without a slash. @param {{name: string}} suite */
const folderName = ({ name }) => name.replace('@', '').replace('/', '-');

/** Where a suite's files are. @param {{name: string}} suite */
export function sourceOf(suite) {
  return path.join(TARGET, 'suites', folderName(suite), 'source');
}

/** Where results of runs go. */
export const RUNS = path.join(TARGET, 'runs');

/**
 * Fetches what is not there yet.
 * @param {import('./suites.mjs').Suite[]} chosen
 * @param {{lock?: boolean}} [options]
 * @returns {Map<string, string>} suites that cannot be had here, and why
 */
export function prepare(chosen, { lock = false } = {}) {
  mkdirSync(TARGET, { recursive: true });
  const absent = fetchDebian(chosen);
  writeManifests();
  if (lock) {
    npm(['install', '--package-lock-only']);
    const known = JSON.parse(readFileSync(path.join(TARGET, 'package-lock.json'), 'utf8'));
    // Where packages come from is each machine's own affair; their hashes stay.
    for (const entry of Object.values(known.packages)) delete entry.resolved;
    writeJson(LOCK, known);
    return absent;
  }
  const isAll = chosen.length === SUITES.length;
  const wanted = (names) => `${fingerprint()} ${names}\n`;
  const selection = isAll ? 'all' : chosen.map(folderName).join(' ');
  const stamp = path.join(TARGET, 'prepared.txt');
  const there = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  if (there === wanted('all') || there === wanted(selection)) return absent;
  const known = JSON.parse(readFileSync(LOCK, 'utf8'));
  for (const [name, entry] of Object.entries(known.packages)) if (entry.link) entry.resolved = name.replace('node_modules/suite-', 'suites/');
  writeJson(path.join(TARGET, 'package-lock.json'), known);
  npm(['ci', ...(isAll ? [] : ['--include-workspace-root', ...chosen.map((suite) => `--workspace=suite-${folderName(suite)}`)])]);
  for (const suite of chosen.filter(({ debian }) => !debian)) copyPackage(suite);
  writeFileSync(stamp, wanted(selection));
  return absent;
}

function fingerprint() {
  return createHash('sha256').update(readFileSync(LOCK)).digest('hex');
}

/** npm's tarballs are unpacked by npm, which compares their hash; tests then run outside of node_modules. */
function copyPackage(suite) {
  const own = path.join(TARGET, 'suites', folderName(suite), 'node_modules', suite.name);
  const from = existsSync(own) ? own : path.join(TARGET, 'node_modules', suite.name);
  const { version } = JSON.parse(readFileSync(path.join(from, 'package.json'), 'utf8'));
  if (version !== suite.version) throw new Error(`${suite.name} is ${version}, not ${suite.version}`);
  rmSync(sourceOf(suite), { recursive: true, force: true });
  cpSync(from, sourceOf(suite), { recursive: true, verbatimSymlinks: true });
}

/** One workspace for each suite, above its source: what it requires is found there. */
function writeManifests() {
  for (const suite of SUITES) {
    const own = suite.debian ? dependenciesOf(suite) : { [suite.name]: suite.version };
    const folder = path.join(TARGET, 'suites', folderName(suite));
    mkdirSync(folder, { recursive: true });
    writeJson(path.join(folder, 'package.json'), {
      name: `suite-${folderName(suite)}`,
      private: true,
      version: '0.0.0',
      dependencies: { ...own, ...suite.needs },
    });
  }
  writeJson(path.join(TARGET, 'package.json'), { name: 'onehop-suites', private: true, version: '0.0.0', workspaces: ['suites/*'], dependencies: TOOLS });
}

function dependenciesOf(suite) {
  const own = path.join(sourceOf(suite), 'package.json');
  if (existsSync(own)) return JSON.parse(readFileSync(own, 'utf8')).dependencies ?? {};
  // Where the source is not there, the lock still knows what it needs.
  const known = JSON.parse(readFileSync(LOCK, 'utf8')).packages[`suites/${folderName(suite)}`];
  return known?.dependencies ?? {};
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function npm(words) {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--legacy-peer-deps'];
  const { status } = spawnSync('npm', [...words, ...flags], { cwd: TARGET, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`npm ${words.join(' ')} failed`);
}

function fetchDebian(chosen) {
  const wanted = chosen.filter(({ debian }) => debian);
  const missing = wanted.filter((suite) => !isUnpacked(suite));
  const absent = new Map();
  if (missing.length === 0) return absent;
  const archive = path.join(TARGET, 'archive');
  const settings = apt(archive);
  for (const suite of missing) {
    try {
      unpack(suite, archive, settings);
    } catch (error) {
      absent.set(suite.name, error.message);
    }
  }
  return absent;
}

function isUnpacked(suite) {
  const stamp = `${sourceOf(suite)}.sha256`;
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === suite.debian.sha256;
}

function unpack(suite, archive, settings) {
  const { package: name, version, file, sha256 } = suite.debian;
  const tarball = path.join(archive, file);
  let said = '';
  if (!existsSync(tarball)) {
    if (settings === null) throw new Error('no apt that knows Debian\'s archive');
    // A mirror may lack Debian's own additions; upstream's tarball is all that is wanted.
    const words = ['source', '--only-source', '--download-only', '--quiet', `${name}=${version}`];
    said = spawnSync('apt-get', words, { cwd: archive, env: settings, encoding: 'utf8' }).stderr;
  }
  if (!existsSync(tarball)) throw new Error(`${file} could not be fetched: ${said.split('\n')[0]}`);
  const hash = createHash('sha256').update(readFileSync(tarball)).digest('hex');
  if (hash !== sha256) throw new Error(`${file} has the hash ${hash}, expected ${sha256}`);
  rmSync(sourceOf(suite), { recursive: true, force: true });
  mkdirSync(sourceOf(suite), { recursive: true });
  const { status } = spawnSync('tar', ['xf', tarball, '-C', sourceOf(suite), '--strip-components=1'], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${file} could not be unpacked`);
  writeFileSync(`${sourceOf(suite)}.sha256`, sha256);
}

/** apt with an index of its own, from the mirror that the machine uses. */
function apt(archive) {
  for (const folder of ['lists/partial', 'cache/archives/partial']) mkdirSync(path.join(archive, folder), { recursive: true });
  const mirror = mirrorOfThisMachine();
  if (mirror === null) return null;
  writeFileSync(path.join(archive, 'status'), '');
  writeFileSync(path.join(archive, 'sources.sources'), `Types: deb-src\nURIs: ${mirror}\nSuites: ${RELEASES}\nComponents: main\nSigned-By: ${KEYRING}\n`);
  writeFileSync(path.join(archive, 'apt.conf'), [
    `Dir::State "${archive}";`, `Dir::State::status "${archive}/status";`, `Dir::Cache "${archive}/cache";`,
    `Dir::Etc::sourcelist "${archive}/sources.sources";`, 'Dir::Etc::sourceparts "-";', 'Acquire::Languages "none";',
    'APT::Sandbox::User "root";', '',
  ].join('\n'));
  const settings = { ...process.env, APT_CONFIG: path.join(archive, 'apt.conf') };
  const { status } = spawnSync('apt-get', ['update', '--quiet'], { env: settings, stdio: 'ignore' });
  return status === 0 ? settings : null;
}

function mirrorOfThisMachine() {
  const folder = '/etc/apt/sources.list.d';
  if (!existsSync(KEYRING)) return null;
  const files = existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : [];
  for (const file of [...files.filter((name) => /\.(sources|list)$/.test(name)), '/etc/apt/sources.list']) {
    const found = existsSync(file) && /^(?:URIs:|deb(?: \[[^\]]*\])?) *(\S*\/debian)\/?(?: |$)/m.exec(readFileSync(file, 'utf8'));
    if (found) return found[1];
  }
  return null;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, why] of prepare(SUITES, { lock: process.argv[2] === 'lock' })) console.log(`${name}: ${why}`);
}
