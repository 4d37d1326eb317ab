/**
 * The pages of the site as text. Files are read once, at the start; Markdown becomes HTML anew for each page that is asked for.
 *
 * This file knows no server: handler.mjs and express.mjs make responses of its pages. rivals/site does the same in Rust, byte
 * for byte, and expected/ holds what both have to give.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { marked } from 'marked';

const STYLE = read('style.css');
const HOME = read('home.md');
/** How many posts the first page lists. */
const HOME_POSTS = 3;
/** Newest first. */
const POSTS = readdirSync(new URL('content', import.meta.url))
  .filter((name) => name.endsWith('.md'))
  .map((name) => readPost(name.slice(0, -'.md'.length)))
  .sort((one, other) => (one.date < other.date ? 1 : -1));

export const { version } = JSON.parse(read('package.json'));

export function home() {
  return layout('Notes on HTTP', `${marked.parse(HOME)}<h2>Latest notes</h2>\n${list(POSTS.slice(0, HOME_POSTS))}`);
}

export function blogs() {
  return layout('All notes', `<h1>All notes</h1>\n${list(POSTS)}`);
}

/** The page of one post, or nothing where no post has this id. */
export function blog(id) {
  const post = POSTS.find((post) => post.id === id);
  if (post === undefined) return undefined;
  const { title, date, markdown } = post;
  return layout(title, `<article>
<h1>${escape(title)}</h1>
<p><time datetime="${date}">${date}</time></p>
${marked.parse(markdown)}</article>
`);
}

export function missing() {
  return layout('Not found', `<h1>Not found</h1>
<p>There is no page at this address. <a href="/blogs">All notes</a> are in one list.</p>
`);
}

function list(posts) {
  return posts.map(({ id, title, date, description }) => `<section>
<h3><a href="/blogs/${id}">${escape(title)}</a></h3>
<p><time datetime="${date}">${date}</time></p>
${marked.parse(description)}</section>
`).join('');
}

function layout(title, content) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<style>
${STYLE}</style>
</head>
<body>
<header><a href="/">Notes on HTTP</a><a href="/blogs">All notes</a></header>
<main>
${content}</main>
</body>
</html>
`;
}

/** Text that is safe within an element and within a quoted attribute. */
function escape(text) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (letter) => entities[letter]);
}

/** A post: lines of `key: value` between two lines of `---`, then Markdown. */
function readPost(id) {
  const [, head, markdown] = /^---\n(.*?)\n---\n(.*)$/s.exec(read(`content/${id}.md`));
  const fields = head.split('\n').map((line) => {
    const colon = line.indexOf(': ');
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
  const { title, date, description } = Object.fromEntries(fields);
  return { id, title, date, description, markdown };
}

function read(name) {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
