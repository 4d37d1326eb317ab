// Finds the command lines of onehop in shell blocks of documentation. No shell: it knows quotes, comments, here-documents,
// pipes, redirections and variables before a command, which is all that the pages use.

/** Words after `onehop` of each command line in a block of `sh`, `console` or `ini`. */
export function commandLines(text, language) {
  const lines = joined(text)
    .filter((line) => language !== "console" || /^[$#] /.test(line))
    .map((line) => (language === "console" ? line.slice(2) : line.replace(/^\w+=(?=\/)/, language === "ini" ? "" : "$&")));
  return withoutHereDocuments(lines).flatMap(commands).map(wordsOfOnehop).filter(Boolean);
}

/** Lines, with those that end in a backslash joined to the next one. */
function joined(text) {
  return text.replaceAll(/\\\n\s*/g, " ").split("\n");
}

function withoutHereDocuments(lines) {
  let end;
  return lines.filter((line) => {
    const isInside = end !== undefined;
    if (isInside && line === end) end = undefined;
    else if (!isInside) end = /<<-?'?(\w+)'?/.exec(line)?.[1];
    return !isInside;
  });
}

/** The simple commands of a line, each a list of words. */
function commands(line) {
  const tokens = line.matchAll(/\s+|#.*$|\d?>&?\d?|<+|\$\(|[|&;()]+|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"|&;()<>\\])+/g);
  const found = [[]];
  let isFile = false;
  for (const [token] of tokens) {
    if (/^\s|^#/.test(token)) continue;
    if (/^\d?>|^</.test(token)) isFile = !/&\d$/.test(token);
    else if (/^(?:\$\(|[|&;()])/.test(token)) found.push([]);
    else if (isFile) isFile = false;
    else found.at(-1).push(unquoted(token));
  }
  return found;
}

function unquoted(token) {
  return token.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g, (_, single, double, escaped) => single ?? double ?? escaped);
}

function wordsOfOnehop(words) {
  const isBefore = (word) => /^[A-Z_]+=/.test(word) || ["sudo", "npx", "exec", "until", "do", "time"].includes(word);
  const at = words.findIndex((word) => !isBefore(word));
  return /^(?:\S*\/)?onehop$/.test(words[at] ?? "") && words.length > at + 1 ? words.slice(at + 1) : undefined;
}
