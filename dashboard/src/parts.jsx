// The small things that views are made of.

import { useId, useState } from "preact/hooks";
import { post } from "./data.js";
import { count, delta } from "./format.js";
import { token } from "./token.js";
import { usePage } from "./view.js";

const SIGNS = {
  well: <circle cx="6" cy="6" r="5" />,
  busy: <path d="M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1m0 2v6a3 3 0 0 1 0-6" />,
  warn: <path d="M6 .6 11.6 11H.4z" />,
  bad: <path d="M3.6 1.2 6 3.6l2.4-2.4 2.4 2.4L8.4 6l2.4 2.4-2.4 2.4L6 8.4l-2.4 2.4-2.4-2.4L3.6 6 1.2 3.6z" />,
};

/** A level's sign; each has a shape of its own. Without text it is for the eye only, beside words that say it. */
export function State({ level, text }) {
  return (
    <span class={`state is-${level}`}>
      <svg viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">{SIGNS[level]}</svg>
      {text}
    </span>
  );
}

export function Card({ title, more, actions, children, isWide }) {
  const id = useId();
  return (
    <section class={`card${isWide ? " is-wide" : ""}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions}
        {more && <a href={more} aria-label={`${title}: all`}>All</a>}
      </header>
      {children}
    </section>
  );
}

export const Empty = ({ children }) => <p class="empty">{children}</p>;

/** What to show until there is an answer, or where there is none. */
export function Waiting({ error }) {
  return <Empty>{error ? `No answer: ${error.message}. The page keeps asking.` : "Asking …"}</Empty>;
}

/** The change to the range before. `isBad` where more is worse: only then it has a colour. */
export function Delta({ value, before, isBad }) {
  const found = delta(value, before);
  if (!found) return null;
  const tone = !isBad || Math.abs(found.change) < 0.1 ? "" : found.change > 0 ? " is-worse" : " is-better";
  return <span class={`delta${tone}`} title="against the range before">{found.text}</span>;
}

/** A figure with its name, its change, and one more word on it. */
export function Tile({ label, value, note, delta: change, title, level }) {
  return (
    <div class="tile" title={title}>
      <dt>{label}</dt>
      <dd>
        <b>{level && <State level={level} />}{value}</b>
        <span class="note">{change}{note && <span>{note}</span>}</span>
      </dd>
    </div>
  );
}

export const Tiles = ({ children }) => <dl class="tiles card">{children}</dl>;

/** A figure that is faint at zero, so that the others are seen. */
export const Figure = ({ value, children }) => <span class={value === 0 ? "faint" : undefined}>{children}</span>;

/** A column of text; `cell` writes a row's. */
export const text = (key, label, cell, others) => ({ key, label, cell, isText: true, ...others });

/** A column of figures, sorted by its value and written by `write`, unless `others` has a cell. */
export const figure = (key, label, valueOf, write = count, others = {}) => ({
  key, label, isNumber: true, sort: (row) => valueOf(row) ?? -1,
  cell: (row) => <Figure value={valueOf(row)}>{write(valueOf(row))}</Figure>, ...others,
});

/**
 * A table. Each column is `{key, label, cell(row), sort(row)?, isNumber?, isMinor?, title?}`; minor ones are left out
 * on a phone. A column with `sort` can be sorted by, largest first.
 */
export function Table({ label, columns, rows, keyOf, initial, empty, most }) {
  const [order, setOrder] = useState(initial ? { key: initial, isUp: false } : null);
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  const by = order && columns.find(({ key }) => key === order.key);
  const compare = (one, other) => (by.sort(one) < by.sort(other) ? -1 : by.sort(one) > by.sort(other) ? 1 : 0);
  const sorted = by ? rows.toSorted((one, other) => (order.isUp ? compare(one, other) : compare(other, one))) : rows;
  const shown = most ? sorted.slice(0, most) : sorted;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>{columns.map((column) => <Head key={column.key} column={column} order={order} setOrder={setOrder} />)}</tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => <td key={column.key} class={classOf(column)}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < rows.length && <p class="empty">and {rows.length - shown.length} more</p>}
    </div>
  );
}

const classOf = ({ isNumber, isMinor, isText }) =>
  [isNumber && "number", isMinor && "minor", isText && "text"].filter(Boolean).join(" ") || undefined;

function Head({ column, order, setOrder }) {
  const { key, label, sort, title } = column;
  if (!sort) return <th scope="col" class={classOf(column)} title={title}>{label}</th>;
  const isBy = order?.key === key;
  return (
    <th scope="col" class={classOf(column)} title={title} aria-sort={isBy ? (order.isUp ? "ascending" : "descending") : undefined}>
      <button type="button" onClick={() => setOrder({ key, isUp: isBy && !order.isUp })}>
        {label}<span class="order" aria-hidden="true">{isBy ? (order.isUp ? "↑" : "↓") : ""}</span>
      </button>
    </th>
  );
}

/** A bar from nothing to a bound. */
export function Bar({ value, bound, label }) {
  const part = bound ? Math.min(1, value / bound) : 0;
  return (
    <svg class={`bar${part >= 0.9 ? " is-full" : ""}`} viewBox="0 0 60 8" width="60" height="8" role="img" aria-label={label}>
      <rect class="ground" width="60" height="8" rx="2" />
      <rect class="part" width={60 * part} height="8" rx="2" />
    </svg>
  );
}

/** A button that changes something at the server; none without the token. `of` completes the label for a screen reader. */
export function Action({ label, of, path, title, isDisabled }) {
  const { tell } = usePage();
  const [isBusy, setIsBusy] = useState(false);
  if (!token()) return null;
  const act = async () => {
    setIsBusy(true);
    await post(path).then(() => tell(`Done: ${label} ${of}`), (error) => tell(`Not done: ${error.message}`));
    setIsBusy(false);
  };
  return (
    <button type="button" class="action" title={title} disabled={isBusy || isDisabled} onClick={act}>
      {label}<span class="hidden"> {of}</span>
    </button>
  );
}
