//! The rules. Each says what it found, where, and why it matters.
//!
//! They hold for text that `source.rs` has prepared; none of them reads a file.

use super::finding::Finding;
use super::source::{Function, Source, word_in};

/// Lines of a file without its tests.
const FILE_LINES_MAX: usize = 800;

/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;

/// From here on an integer in the server is a bound, and bounds live in `limits.rs`.
const BOUND_MIN: u128 = 1024;

/// Above a function that is one flat table: `// tidy: table, because …`.
const TABLE_MARKER: &str = "// tidy: table, ";

/// Numbers that convert one unit into another.
const UNITS: [u128; 5] = [1024, 3_600, 86_400, 1_000_000, 1_000_000_000];

/// On or above a line whose large number is no bound: `// tidy: not a bound, because …`.
const NOT_A_BOUND_MARKER: &str = "// tidy: not a bound, ";

/// Crates that turn what they are handed into values, and do nothing else.
const PURE_CRATES: &[&str] =
    &["crates/adapt/", "crates/config/", "crates/http1/", "crates/statistics/", "crates/wire/"];

/// Words that no pure crate has, with what they would bring in.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "a runtime"),
    ("async", "async code"),
    ("await", "async code"),
    ("TcpStream", "a socket"),
    ("TcpListener", "a socket"),
    ("UdpSocket", "a socket"),
    ("UnixStream", "a socket"),
    ("UnixListener", "a socket"),
    ("ToSocketAddrs", "name resolution"),
    ("Instant", "a clock"),
    ("SystemTime", "a clock"),
    ("rustix", "system calls"),
];

/// Modules of std that no pure crate uses, with what they would bring in.
const IMPURE_MODULES: &[(&str, &str)] =
    &[("fs", "the file system"), ("env", "the environment"), ("process", "processes"), ("thread", "threads")];

/// Files of pure crates that may read what they are handed: the Onehopfile, what it imports, and the
/// variables that it names.
const READERS: &[&str] = &["crates/config/src/source.rs"];

/// Names under which anything could be filed.
const VAGUE_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

/// Every rule for a Rust file.
pub(crate) fn check_rust(source: &Source, findings: &mut Vec<Finding>) {
    let mut report = |line: usize, reason: String| {
        findings.push(Finding { path: source.path.clone(), line: line + 1, reason });
    };
    header(source, &mut report);
    examples(source, &mut report);
    names(source, &mut report);
    sizes(source, &mut report);
    lints(source, &mut report);
    purity(source, &mut report);
    planes(source, &mut report);
    bounds(source, &mut report);
}

/// Rules for manifests and lockfiles.
pub(crate) fn check_other(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut in_dependencies = false;
    for (index, line) in text.lines().enumerate() {
        let mut report =
            |reason: String| findings.push(Finding { path: path.to_owned(), line: index + 1, reason });
        if path.ends_with("package-lock.json") && line.trim_start().starts_with("\"resolved\"") {
            report("a lockfile names a registry: installs elsewhere would ask it (set omit-lockfile-registry-resolved)".to_owned());
        }
        if !path.ends_with("Cargo.toml") || !PURE_CRATES.iter().any(|pure| path.starts_with(pure)) {
            continue;
        }
        if line.starts_with('[') {
            in_dependencies = line.trim() == "[dependencies]";
        }
        let package = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if in_dependencies
            && ["tokio", "rustix", "hyper", "notify", "mio", "socket2", "libc"].contains(&package)
        {
            report(format!(
                "a pure crate depends on {package}: it may know no socket, clock, runtime or file system"
            ));
        }
    }
}

/// Crate roots forbid unsafe code; every module opens with what it owns. Tests say it by their names.
fn header(source: &Source, report: &mut impl FnMut(usize, String)) {
    let is_root = ["/src/lib.rs", "/src/main.rs"].iter().any(|end| source.path.ends_with(end))
        || source.path.contains("/src/bin/");
    if is_root && !source.code.iter().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
        report(0, "a crate root without #![forbid(unsafe_code)]".to_owned());
    }
    if source.path.contains("/tests/") {
        return;
    }
    let first = source.lines.iter().position(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("#![") && !line.starts_with("#!/")
    });
    if let Some(first) = first.filter(|&first| !source.lines[first].starts_with("//!")) {
        report(
            first,
            "a module without a header (`//!`) that says what it owns and what it must never do".to_owned(),
        );
    }
}

/// An example in a comment would be a program to build and to link for each crate; no step runs them.
fn examples(source: &Source, report: &mut impl FnMut(usize, String)) {
    let mut in_block = false;
    for (index, line) in source.lines.iter().enumerate() {
        let line = line.trim_start();
        let Some(language) = line.strip_prefix("//! ```").or_else(|| line.strip_prefix("/// ```")) else {
            continue;
        };
        if !in_block && (language.is_empty() || language.starts_with("rust")) {
            report(
                index,
                "an example in a comment, which no step runs: put it into the crate's `examples`".to_owned(),
            );
        }
        in_block = !in_block;
    }
}

fn names(source: &Source, report: &mut impl FnMut(usize, String)) {
    for part in source.path.split('/').map(|part| part.trim_end_matches(".rs")) {
        if VAGUE_NAMES.contains(&part) {
            report(0, format!("a module named `{part}`: name it after what it owns"));
        }
    }
    for (index, line) in source.code.iter().enumerate() {
        let Some(place) = word_in(line, "mod") else { continue };
        let name = line[place + 3..]
            .trim_start()
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .next();
        if name.is_some_and(|name| VAGUE_NAMES.contains(&name)) {
            report(
                index,
                "a module under whose name anything could be filed: name it after what it owns".to_owned(),
            );
        }
    }
}

fn sizes(source: &Source, report: &mut impl FnMut(usize, String)) {
    let length = source.length_without_tests();
    if length > FILE_LINES_MAX {
        report(
            FILE_LINES_MAX,
            format!("{length} lines without tests, at most {FILE_LINES_MAX}: it owns more than one thing"),
        );
    }
    for function in source.functions() {
        let length = function.lines.len();
        if length > FUNCTION_LINES_MAX
            && !source.is_test[function.lines.start]
            && !is_table(source, &function)
        {
            report(
                function.lines.start,
                format!(
                    "`{}` has {length} lines, at most {FUNCTION_LINES_MAX} (a flat table is marked `{TABLE_MARKER}because …`)",
                    function.name
                ),
            );
        }
    }
}

/// Marked as a table, or plainly one: all but a few lines are arms of one `match`, none nested deeply.
fn is_table(source: &Source, function: &Function) -> bool {
    let start = function.lines.start;
    // Doc comments and attributes may stand between the marker and `fn`.
    let above = source.lines[..start].iter().rev().take_while(|line| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[")
    });
    if above.into_iter().any(|line| line.trim_start().starts_with(TABLE_MARKER)) {
        return true;
    }
    let body = &source.code[function.lines.clone()];
    let Some(match_line) = body.iter().position(|line| word_in(line, "match").is_some()) else {
        return false;
    };
    let base = indent(&body[0]);
    let in_match = body[match_line..].iter().filter(|line| indent(line) > base + 4).count();
    let deep = body.iter().filter(|line| indent(line) > base + 16).count();
    in_match * 10 >= body.len() * 8 && deep * 20 <= body.len()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn lints(source: &Source, report: &mut impl FnMut(usize, String)) {
    for (index, line) in source.code.iter().enumerate() {
        if line.contains("#[allow(") || line.contains("#![allow(") {
            report(index, "`allow` hides a lint for good: use #[expect(.., reason = \"..\")]".to_owned());
        }
    }
}

fn purity(source: &Source, report: &mut impl FnMut(usize, String)) {
    let is_pure = PURE_CRATES.iter().any(|pure| source.path.starts_with(&format!("{pure}src/")));
    if !is_pure {
        return;
    }
    for (index, line) in source.code_outside_tests() {
        for (word, what) in IMPURE {
            if word_in(line, word).is_some() {
                report(index, format!("`{word}` brings {what} into a pure crate"));
            }
        }
        if READERS.contains(&source.path.as_str()) {
            continue;
        }
        for (module, what) in IMPURE_MODULES {
            let used = [format!("std::{module}::"), format!("std::{module};")];
            if used.iter().any(|used| line.contains(used.as_str()))
                || line.trim_start().starts_with(&format!("{module}::"))
            {
                report(index, format!("`std::{module}` brings {what} into a pure crate"));
            }
        }
    }
}

/// The data plane never reaches into the control plane: it reads snapshots that are published to it.
fn planes(source: &Source, report: &mut impl FnMut(usize, String)) {
    if !source.path.starts_with("crates/server/src/request/") {
        return;
    }
    let mut in_use = false;
    for (index, line) in source.code_outside_tests() {
        let begins = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        in_use |= begins.starts_with("use ");
        let named = word_in(line, "control").is_some();
        if named && (in_use || line.contains("control::")) {
            report(
                index,
                "`request/` reaches into `control/`: the data plane only reads snapshots".to_owned(),
            );
        }
        if line.contains(';') {
            in_use = false;
        }
    }
}

/// Large numbers and durations in the server have a name in `limits.rs`.
fn bounds(source: &Source, report: &mut impl FnMut(usize, String)) {
    if !source.path.starts_with("crates/server/src/") || source.path.contains("/limits") {
        return;
    }
    let mut in_named = false;
    for (index, line) in source.code_outside_tests() {
        // A documented constant is a name with its reason; it may stand beside the one loop it bounds.
        let declaration =
            line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
        let begins = declaration.trim_start_matches("pub ").starts_with("const ");
        in_named |= begins && index > 0 && source.lines[index - 1].trim_start().starts_with("///");
        if in_named {
            in_named = !line.trim_end().ends_with(';');
            continue;
        }
        let here = source.lines[index].contains(NOT_A_BOUND_MARKER);
        let above = index > 0 && source.lines[index - 1].trim_start().starts_with(NOT_A_BOUND_MARKER);
        if here || above {
            continue;
        }
        if let Some(number) =
            numbers(line).into_iter().find(|&number| number >= BOUND_MIN && !UNITS.contains(&number))
        {
            report(
                index,
                format!(
                    "{number} is a bound without a name: put it into limits.rs with unit and reason (or `{NOT_A_BOUND_MARKER}because …`)"
                ),
            );
        }
        if let Some(place) = line.find("Duration::from_") {
            let argument = line[place..].split_once('(').map_or("", |(_, rest)| rest);
            if argument.starts_with(|letter: char| letter.is_ascii_digit()) {
                report(index, "a duration without a name: put it into limits.rs with its reason".to_owned());
            }
        }
    }
}

/// Decimal integers of a line; hexadecimal ones are masks and code points, not bounds.
fn numbers(line: &str) -> Vec<u128> {
    let mut found = Vec::new();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    for word in line.split(|letter: char| !is_word(letter)) {
        let digits: String = word
            .chars()
            .take_while(|letter| letter.is_ascii_digit() || *letter == '_')
            .filter(|letter| *letter != '_')
            .collect();
        let suffix = word.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
        let plain = suffix.is_empty() || ["u", "i"].iter().any(|kind| suffix.starts_with(kind));
        if !word.starts_with('_') && plain {
            found.extend(digits.parse::<u128>().ok());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::expect;
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        if path.ends_with(".rs") {
            check_rust(&Source::read(path, text), &mut findings);
        } else {
            check_other(path, text, &mut findings);
        }
        expect(&findings, expected);
    }

    #[test]
    fn a_clean_file_passes() {
        check("crates/server/src/request/listen.rs", "//! Accepts.\n\nuse crate::limits;\n", &[]);
    }

    #[test]
    fn a_crate_root_forbids_unsafe_code() {
        check("crates/http1/src/lib.rs", "//! Heads.\n", &[(1, "forbid(unsafe_code)")]);
        check("crates/http1/src/lib.rs", "//! Heads.\n#![forbid(unsafe_code)]\n", &[]);
    }

    #[test]
    fn a_module_opens_with_its_header() {
        check("crates/server/src/x.rs", "use std::io;\n", &[(1, "header")]);
    }

    #[test]
    fn examples_stand_in_a_folder_of_their_own() {
        let text = "//! x\n//! ```text\n//! a -> b\n//! ```\n//! ```\n//! f();\n//! ```\n";
        check("crates/onehop/src/a.rs", text, &[(5, "examples")]);
    }

    #[test]
    fn a_pure_crate_has_no_socket_clock_or_file() {
        let text =
            "//! x\nuse std::time::Instant;\nuse std::net::IpAddr;\nfn f() {\n    std::fs::read(p);\n}\n";
        check("crates/config/src/a.rs", text, &[(2, "a clock"), (5, "the file system")]);
        check("crates/config/src/source.rs", "//! x\nfn f() {\n    std::fs::read(p);\n}\n", &[]);
        check("crates/config/src/a.rs", "//! x\n// tokio would not do here\nlet a = \"tokio\";\n", &[]);
        check("crates/config/src/a.rs", "//! x\n#[cfg(test)]\nmod tests {\n    use std::fs::read;\n}\n", &[]);
    }

    #[test]
    fn a_pure_crate_depends_on_no_runtime() {
        let text = "[dependencies]\nhttparse.workspace = true\ntokio.workspace = true\n\n[dev-dependencies]\ntokio = \"1\"\n";
        check("crates/http1/Cargo.toml", text, &[(3, "tokio")]);
        check("crates/server/Cargo.toml", text, &[]);
    }

    #[test]
    fn the_data_plane_does_not_reach_into_the_control_plane() {
        let text = "//! x\nuse crate::{\n    control::publish,\n    limits,\n};\nfn control() {}\n";
        check("crates/server/src/request/a.rs", text, &[(3, "snapshots")]);
        check(
            "crates/server/src/request/a.rs",
            "//! x\nfn f() {\n    crate::control::stop();\n}\n",
            &[(3, "snapshots")],
        );
        check("crates/server/src/control/a.rs", text, &[]);
        let header = "//! x\nfn f(head: &Head) {\n    head.get(CACHE_CONTROL); let control = 1;\n}\n";
        check("crates/server/src/request/a.rs", header, &[]);
    }

    #[test]
    fn bounds_have_names() {
        let text = "//! x\nconst A: usize = 65_536;\nlet b = 1_000;\nlet c = 0xffff;\nlet d = 10_000usize;\n";
        check("crates/server/src/a.rs", text, &[(2, "65536"), (5, "10000")]);
        check("crates/server/src/limits.rs", text, &[]);
        check("crates/onehop/src/a.rs", text, &[]);
        let named = "//! x\n/// Bytes of a page: what the kernel reads at once.\nconst A: [usize; 2] = [\n    4_096,\n    8_192,\n];\nlet b = 4_096;\n";
        check("crates/server/src/a.rs", named, &[(7, "4096")]);
        let marked = "//! x\n// tidy: not a bound, because RFC 9110 numbers it so\nlet a = 9110;\n";
        check("crates/server/src/a.rs", marked, &[]);
        let pauses = "//! x\nlet a = Duration::from_millis(5);\nlet b = Duration::from_millis(limit);\n";
        check("crates/server/src/a.rs", pauses, &[(2, "duration")]);
    }

    #[test]
    fn long_functions_and_files_are_found() {
        let long = format!("//! x\nfn long() {{\n{}}}\n", "    work();\n".repeat(FUNCTION_LINES_MAX));
        check("crates/onehop/src/a.rs", &long, &[(2, "`long` has 72 lines")]);
        let marked = long.replace("fn long", "// tidy: table, because it maps words to steps\nfn long");
        check("crates/onehop/src/a.rs", &marked, &[]);
        let table = format!(
            "//! x\nfn table() {{\n    match word {{\n{}    }}\n}}\n",
            "        1 => 2,\n".repeat(90)
        );
        check("crates/onehop/src/a.rs", &table, &[]);
        let file = format!("//! x\n{}", "const A: u8 = 1;\n".repeat(FILE_LINES_MAX));
        check("crates/onehop/src/a.rs", &file, &[(801, "more than one thing")]);
    }

    #[test]
    fn vague_names_and_silenced_lints_are_found() {
        check("crates/onehop/src/utils.rs", "//! x\n", &[(1, "`utils`")]);
        check("crates/onehop/src/a.rs", "//! x\nmod helpers;\n", &[(2, "filed")]);
        check("crates/onehop/src/a.rs", "//! x\n#[allow(dead_code)]\nfn a() {}\n", &[(2, "expect")]);
    }

    #[test]
    fn a_lockfile_names_no_registry() {
        check("examples/x/package-lock.json", "{\n  \"resolved\": \"https://x\"\n}\n", &[(2, "registry")]);
    }
}
