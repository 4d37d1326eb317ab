//! What a script says about the expected status, read and never executed.
//!
//! Owns the few forms in which people write it as a number. All else is "more than that", and it is said that it is
//! there.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::collection::limits::SCRIPT_BYTES_MAX;

/// What was read of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Statuses that it expects.
    pub(super) statuses: BTreeSet<u16>,
    /// There is nothing in it but that.
    pub(super) is_understood: bool,
    /// There is nothing in it at all.
    pub(super) is_empty: bool,
    /// Variables that it would set.
    pub(super) sets: Vec<String>,
}

/// Assertions that take a number, as they stand without spaces.
const NUMBERED: [&str; 11] = [
    "pm.response.to.have.status(",
    "pm.expect(pm.response).to.have.status(",
    "pm.expect(pm.response.code).to.equal(",
    "pm.expect(pm.response.code).to.equals(",
    "pm.expect(pm.response.code).to.eql(",
    "pm.expect(pm.response.code).to.eq(",
    "pm.expect(pm.response.code).to.be.equal(",
    "pm.expect(pm.response.code).to.be.eql(",
    "pm.expect(pm.response.code).to.be.eq(",
    "pm.expect(pm.response.code).to.deep.equal(",
    "pm.expect(pm.response.code).to.be.oneOf([",
];

/// Assertions with a word for a status or a class of them.
const WORDS: [(&str, RangeInclusive<u16>); 12] = [
    ("success", 200..=299),
    ("ok", 200..=200),
    ("accepted", 202..=202),
    ("redirection", 300..=399),
    ("badRequest", 400..=400),
    ("unauthorized", 401..=401),
    ("forbidden", 403..=403),
    ("notFound", 404..=404),
    ("rateLimited", 429..=429),
    ("clientError", 400..=499),
    ("serverError", 500..=599),
    ("error", 400..=599),
];

/// What stands around an assertion in a test that has nothing else. `"` is any text.
const FRAME: [&str; 9] = [
    "pm.test(\",function(){",
    "pm.test(\",function()",
    "pm.test(\",()=>{",
    "pm.test(\",()=>",
    "pm.test(\",async()=>{",
    "})",
    "}",
    ")",
    ";",
];

/// What sets a variable; its name follows.
const SETTERS: [&str; 3] = [".set(\"", "setEnvironmentVariable(\"", "setGlobalVariable(\""];

pub(super) fn read(source: &str) -> Reading {
    if source.len() > SCRIPT_BYTES_MAX {
        return Reading::default();
    }
    let (text, strings) = compact(source);
    let mut reading = Reading { is_understood: true, is_empty: text.is_empty(), ..Reading::default() };
    let mut rest = text.as_str();
    // How many texts stand before the rest: they are numbered in their order.
    let mut passed = 0;
    while let Some(letter) = rest.chars().next() {
        let next = match assertion(rest) {
            Some((statuses, next)) => {
                reading.statuses.extend(statuses);
                next
            }
            None => match FRAME.iter().find_map(|frame| rest.strip_prefix(frame)) {
                Some(next) => next,
                None => {
                    reading.is_understood = false;
                    if SETTERS.iter().any(|setter| rest.starts_with(setter)) {
                        let to_name = rest.find('"').and_then(|at| rest.get(..at)).unwrap_or_default();
                        let number = passed + to_name.matches('"').count();
                        reading.sets.extend(strings.get(number).cloned());
                    }
                    rest.get(letter.len_utf8()..).unwrap_or_default()
                }
            },
        };
        passed += rest
            .len()
            .checked_sub(next.len())
            .and_then(|end| rest.get(..end))
            .unwrap_or_default()
            .matches('"')
            .count();
        rest = next;
    }
    reading
}

/// An assertion at the beginning of the text: its statuses, and what follows it.
fn assertion(text: &str) -> Option<(Vec<u16>, &str)> {
    if let Some(rest) = text.strip_prefix("pm.response.to.be.") {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        let (_, statuses) = WORDS.iter().find(|(known, _)| *known == word)?;
        return Some((statuses.clone().collect(), rest));
    }
    // The old form: `tests["is there"] = responseCode.code === 200`.
    if let Some(rest) = text.strip_prefix("tests[\"]=responseCode.code==") {
        let (status, rest) = number(rest.strip_prefix('=').unwrap_or(rest))?;
        return Some((vec![status], rest));
    }
    let mut rest = NUMBERED.iter().find_map(|known| text.strip_prefix(known))?;
    let mut statuses = Vec::new();
    loop {
        let (status, after) = number(rest)?;
        statuses.push(status);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Some((statuses, after.strip_prefix("])").or_else(|| after.strip_prefix(')'))?)),
        }
    }
}

/// A status at the beginning of the text, and what follows it.
fn number(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(3)?;
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit())
        && !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '.');
    let status = digits.parse().ok().filter(|status| is_whole && (100..600).contains(status))?;
    Some((status, rest))
}

/// A script without spaces and comments, each text in it a single `"`; and the texts.
fn compact(source: &str) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut strings = Vec::new();
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = match letter {
            '"' | '\'' | '`' => {
                let (string, after) = string(after, letter);
                out.push('"');
                strings.push(string);
                after
            }
            '/' if after.starts_with('/') => {
                after.find('\n').and_then(|end| after.get(end..)).unwrap_or_default()
            }
            '/' if after.starts_with('*') => {
                let end = after.get(1..).and_then(|after| after.find("*/"));
                end.and_then(|end| after.get(end + 3..)).unwrap_or_default()
            }
            letter if letter.is_whitespace() => after,
            letter => {
                out.push(letter);
                after
            }
        };
    }
    (out, strings)
}

/// A text up to its closing mark, and what follows that.
fn string(text: &str, mark: char) -> (String, &str) {
    let mut out = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == mark {
            return (out, text.get(at + letter.len_utf8()..).unwrap_or_default());
        }
        match letter {
            '\\' => out.extend(letters.next().map(|(_, letter)| letter)),
            letter => out.push(letter),
        }
    }
    (out, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_that_stand_there_are_read() {
        let cases: [(&str, &[u16]); 11] = [
            ("pm.test('a', function () {\n  pm.response.to.have.status(200);\n});", &[200]),
            ("pm.test(\"it is (not) there\", () => pm.response.to.have.status(404));", &[404]),
            ("pm.test('x', () => { pm.expect(pm.response.code).to.equal(404); })", &[404]),
            ("pm.expect(pm.response.code).to.be.oneOf([200, 201, 204]);", &[200, 201, 204]),
            ("tests['old'] = responseCode.code === 302;", &[302]),
            ("pm.response.to.be.notFound", &[404]),
            (
                "// nothing but 500\n/* pm.response.to.have.status(500) */ pm.response.to.have.status(201)",
                &[201],
            ),
            ("pm.expect(pm.response).to.have.status(418);", &[418]),
            ("", &[]),
            (
                "pm.test('a', function () { pm.response.to.have.status(200); });\npm.test('b', () => { pm.response.to.have.status(200) });",
                &[200],
            ),
            ("pm.expect(pm.response.code).to.eql(503)", &[503]),
        ];
        for (source, statuses) in cases {
            let reading = read(source);
            assert_eq!(
                (reading.statuses.iter().copied().collect::<Vec<_>>().as_slice(), reading.is_understood),
                (statuses, true),
                "{source}"
            );
        }
    }

    #[test]
    fn what_else_a_script_does_is_seen_and_not_done() {
        let cases: [(&str, &[u16], &[&str]); 7] = [
            ("pm.environment.set(\"token\", pm.response.json().token);", &[], &["token"]),
            (
                "const j = pm.response.json();\npm.test('s', () => pm.response.to.have.status(201));\npm.globals.set('id', j.id); pm.test('i', () => pm.expect(j.id).to.equal(3))",
                &[201],
                &["id"],
            ),
            ("pm.response.to.not.have.status(500)", &[], &[]),
            ("pm.expect(pm.response.responseTime).to.be.below(200);", &[], &[]),
            ("pm.response.to.have.status('OK')", &[], &[]),
            (
                "pm.response.to.have.status(20000); postman.setEnvironmentVariable('a\\'b', 'c')",
                &[],
                &["a'b"],
            ),
            ("\u{e9}\"", &[], &[]),
        ];
        for (source, statuses, sets) in cases {
            let reading = read(source);
            assert_eq!(
                (reading.statuses.iter().copied().collect::<Vec<_>>().as_slice(), reading.is_understood),
                (statuses, false),
                "{source}"
            );
            assert_eq!(reading.sets, sets, "{source}");
        }
    }
}
