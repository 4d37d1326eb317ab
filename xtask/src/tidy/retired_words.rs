//! Words that names no longer use, because the field has one of its own for the thing (STYLE.md, "Words").
//!
//! Only identifiers are looked at: in a sentence, `order` and `rest` are ordinary English.

use super::finding::Finding;
use super::source::Source;

/// Words that no identifier has as a part, and what is written instead.
const RETIRED: &[(&str, &str)] = &[
    ("callee", "target or handler"),
    ("crew", "compressor pool"),
    ("crowd", "in flight at start"),
    ("desk", "connection buffers"),
    ("doors", "mailboxes"),
    ("entrance", "acquire result"),
    ("eyes", "tree watcher"),
    ("familiar", "cached response head"),
    ("farewell", "shutdown grace"),
    ("habit", "learned idle timeout"),
    ("halt", "route result"),
    ("knock", "mailbox"),
    ("lane", "worker connection"),
    ("lend", "steal"),
    ("manner", "response options"),
    ("patience", "timeout or shutdown grace"),
    ("rescue", "error response"),
    ("seat", "worker index"),
    ("shelf", "store publisher"),
    ("surroundings", "environment"),
    ("told", "event or reported"),
    ("travelled", "route result"),
    ("trip", "request context or route"),
    ("wish", "affinity or requested"),
    ("workshop", "compressor pool"),
];

/// Words that are ordinary in names of values, but no name of a type or a module.
const RETIRED_TYPES: &[(&str, &str)] = &[
    ("answer", "response"),
    ("arm", "target"),
    ("ask", "request"),
    ("asked", "acquire result or rate-limit check"),
    ("begin", "start"),
    ("ceiling", "maximum"),
    ("fault", "HttpError"),
    ("floor", "minimum"),
    ("form", "encoded variant"),
    ("gate", "concurrency limiter"),
    ("ground", "what the module holds"),
    ("lead", "delegate"),
    ("least", "minimum effect"),
    ("led", "route result"),
    ("line", "exchange I/O"),
    ("news", "event"),
    ("order", "command"),
    ("pages", "what the module holds"),
    ("pass", "permit"),
    ("place", "directory or slot"),
    ("prove", "verify"),
    ("reserve", "buffer pool"),
    ("rest", "idle"),
    ("silence", "liveness check"),
    ("sound", "valid"),
    ("trial", "side-by-side run"),
    ("way", "route"),
    ("words", "what the module holds"),
    ("zone", "rate limit"),
];

/// What stands before the name of a type or a module.
const TYPE_WORDS: [&str; 6] = ["struct", "enum", "trait", "type", "union", "mod"];

/// A name of the field that has a retired word in it.
const ROUND_TRIP: [&str; 2] = ["round", "trip"];

/// Reports retired words in the names of crates and of xtask; benchmarks, examples and fuzz targets are small and follow.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let ours = |source: &&Source| source.path.starts_with("crates/") || source.path.starts_with("xtask/");
    for source in sources.iter().filter(ours) {
        for (index, line) in source.code.iter().enumerate() {
            findings.extend(retired_in(line).into_iter().map(|(word, instead)| Finding {
                path: source.path.clone(),
                line: index + 1,
                reason: format!("`{word}` is no word of the field: {instead}"),
            }));
        }
    }
}

/// Retired words in the identifiers of a line.
fn retired_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let mut before = "";
    for name in line.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        if name.is_empty() {
            continue;
        }
        let parts = parts(name);
        let is_round_trip = parts.windows(2).any(|pair| pair == ROUND_TRIP);
        let has = |(word, _): &&(&str, &str)| {
            parts.iter().any(|part| part == word) && !(is_round_trip && *word == "trip")
        };
        found.extend(RETIRED.iter().filter(has));
        if TYPE_WORDS.contains(&before) {
            found.extend(RETIRED_TYPES.iter().filter(|(word, _)| parts == [*word]));
        }
        before = name;
    }
    found
}

/// `HTTPHead`, `lane_count` and `LANE_MAX` as words in lower case.
fn parts(name: &str) -> Vec<String> {
    let is_shouted = !name.chars().any(char::is_lowercase);
    let mut parts: Vec<String> = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && !is_shouted) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut().filter(|_| letter != '_') {
            last.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::super::finding::expect;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        super::check(&[Source::read("crates/x/src/a.rs", text)], &mut findings);
        expect(&findings, expected);
    }

    #[test]
    fn a_retired_word_is_found_in_any_part_of_a_name_and_in_no_comment() {
        check(
            "// the lane\nlet lane_count = planes(Lane::new(), LANE_MAX);\n",
            &[(2, "lane"), (2, "lane"), (2, "lane")],
        );
        check("let text = \"lane\"; plane.planed();\n", &[]);
    }

    #[test]
    fn an_ordinary_word_is_refused_as_the_name_of_a_type_or_a_module() {
        check("let order = rest.place();\n", &[]);
        check("struct Order;\nmod place;\nstruct OrderOfBirth;\n", &[(1, "order"), (2, "place")]);
    }

    #[test]
    fn a_round_trip_is_a_word_of_the_field() {
        check("let round_trip = ROUND_TRIPS_MAX;\nlet trip = 1;\n", &[(2, "trip")]);
    }
}
