//! `uri`: how each of its changes is written.

use crate::memory::{Memory, text_of};
use onehop_config::checked::{QueryChange, Step, UriChange};

fn of(line: &str) -> Memory {
    Memory::main(&format!(":80 {{\n\t{line}\n\trespond x\n}}\n"))
}

/// The changes of a `uri query`, by their kinds and names.
fn changes(line: &str) -> String {
    let checked = of(line).sound().checked;
    let Step::ChangeUri(UriChange::Query(changes)) = &checked.sites[0].routes[0].step else {
        panic!("{:?}", checked.sites[0].routes)
    };
    let shown = changes.iter().map(|change| match change {
        QueryChange::Rename { from, to } => format!("{from}>{to}"),
        QueryChange::Set { name, value } => format!("{name}={:?}", value.as_text()),
        QueryChange::Add { name, value } => format!("+{name}={:?}", value.as_text()),
        QueryChange::Replace { name, find, by } => {
            format!("{name:?}~{}~{:?}", find.regex.as_str(), by.as_text())
        }
        QueryChange::Delete { name } => format!("-{name}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn parameters_are_set_added_renamed_removed_or_replaced() {
    for (line, shown) in [
        ("uri query taz test", "taz=Some(\"test\")"),
        ("uri query key=value \"an example\"", "key=value=Some(\"an example\")"),
        ("uri query taz {path}", "taz=None"),
        ("uri query +foo bar", "+foo=Some(\"bar\")"),
        ("uri query -baz", "-baz"),
        ("uri query --baz", "-baz"),
        ("uri query old>new", "old>new"),
        ("uri query a (b)c d$1", "Some(\"a\")~(b)c~Some(\"d$1\")"),
        ("uri query * b \"\"", "None~b~Some(\"\")"),
        ("uri /x/* query -baz", "-baz"),
    ] {
        assert_eq!(changes(line), shown, "{line}");
    }
}

#[test]
fn a_block_changes_the_query_by_kind_whatever_the_order_of_its_lines() {
    let block = "uri query {\n\t\t-gone\n\t\t+more 1\n\t\ta x y\n\t\tset 2\n\t\told>new\n\t}";
    let shown = "old>new set=Some(\"2\") +more=Some(\"1\") Some(\"a\")~x~Some(\"y\") -gone";
    assert_eq!(changes(block), shown);
}

#[test]
fn a_change_of_the_uri_that_cannot_be_is_an_error() {
    for (line, message) in [
        ("uri", "has no argument"),
        ("uri strip_prefix", "do not fit"),
        ("uri strip_prefix /a {\n\t\tx\n\t}", "takes no block"),
        ("uri replace /a", "do not fit"),
        ("uri replace \"\" /b", "the text to replace is empty"),
        ("uri replace /a /b?c", "a path cannot contain this replacement"),
        ("uri replace /a %2", "a path cannot contain this replacement"),
        ("uri replace /a /b 0", "not a number of times"),
        ("uri path_regexp /a", "do not fit"),
        ("uri path_regexp ( /b", "no regular expression"),
        ("uri path_regexp \"\" /b", "the expression to replace is empty"),
        ("uri path_regexp /a /b?c", "a path cannot contain this replacement"),
        ("uri path_regexp /a %$1", "a path cannot contain this replacement"),
        ("uri path_regexp /a ${", "a path cannot contain this replacement"),
        ("uri path_regexp /a ${query.x}", "names a group"),
        ("uri query", "do not fit"),
        ("uri query {\n\t}", "do not fit"),
        ("uri query a b {\n\t\tc d\n\t}", "both after `uri query` and in its block"),
        ("uri query a b c d", "do not fit"),
        ("uri query a", "do not fit"),
        ("uri query +a", "do not fit"),
        ("uri query -a b", "do not fit"),
        ("uri query a>b c", "do not fit"),
        ("uri query a>b>c", "do not fit"),
        ("uri query >b", "a parameter has no name"),
        ("uri query a>", "a parameter has no name"),
        ("uri query -", "a parameter has no name"),
        ("uri query \"\" b", "a parameter has no name"),
        ("uri query -*", "all parameters in a replacement only"),
        ("uri query a ( b", "no regular expression"),
        ("uri query a b ${path}", "names a group"),
        ("uri query {path} b", "cannot have placeholders yet"),
        ("uri query {\n\t\ta b {\n\t\t\tc\n\t\t}\n\t}", "takes no block"),
        ("uri query {\n\t\ta\n\t}", "has no argument"),
        ("uri strip_prefx /a", "did you mean `strip_prefix`"),
    ] {
        let problems = text_of(&of(line).load().err().unwrap_or_else(|| panic!("{line}")));
        assert!(problems.contains(message), "{line}: {problems}");
    }
}
