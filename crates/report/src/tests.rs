//! What all forms of a report have to keep, shown on the made-up reports.

use super::{brief, html, json, markdown, sample, text};

/// Widths that terminals have; the ends are the bounds.
const WIDTHS: [usize; 5] = [60, 80, 100, 120, 200];

/// Letters that only ever stand in secrets of the samples.
const SECRET: &str = "s3cr3t";

/// Bytes that no page of these sizes needs.
const PAGE_BYTES_MAX: usize = 300_000;

#[test]
fn each_kind_of_report_reads_as_it_should_on_a_terminal() {
    for (name, report) in sample::reports() {
        for width in [80, 120] {
            insta::assert_snapshot!(format!("text_{name}_{width}"), text(&report, false, width));
        }
    }
}

#[test]
fn each_kind_of_report_can_be_pasted_into_an_issue() {
    for (name, report) in sample::reports() {
        insta::assert_snapshot!(format!("markdown_{name}"), markdown(&report));
    }
}

#[test]
fn the_json_keeps_its_names() {
    for (name, report) in sample::reports() {
        let mut lines = Vec::new();
        outline("", &json(&report), &mut lines);
        lines.dedup();
        insta::assert_snapshot!(format!("json_{name}"), lines.join("\n"));
    }
}

/// Each place of a value with its kind, and the value of those that are the report's own; of a list the first.
fn outline(path: &str, value: &serde_json::Value, lines: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                outline(&format!("{path}.{name}"), value, lines);
            }
        }
        serde_json::Value::Array(values) if values.is_empty() => lines.push(format!("{path}[]")),
        serde_json::Value::Array(values) => outline(&format!("{path}[]"), &values[0], lines),
        value => lines.push(format!("{path} = {value}")),
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, report) in sample::reports() {
        for width in WIDTHS {
            for line in text(&report, false, width).lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, report) in sample::reports() {
        let coloured = text(&report, true, 80);
        assert!(coloured.contains("\x1b[1m"), "{name}");
        let mut plain = String::new();
        for piece in coloured.split("\x1b[") {
            plain.push_str(match plain.is_empty() {
                true => piece,
                false => piece.split_once('m').unwrap().1,
            });
        }
        // What is painted keeps its spaces to the end of the column.
        let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
        let expected = text(&report, false, 80);
        if !coloured.starts_with('\x1b') {
            assert_eq!(trimmed, expected.lines().collect::<Vec<_>>(), "{name}");
        }
    }
}

#[test]
fn no_form_shows_a_secret_or_obeys_what_comes_from_outside() {
    for (name, report) in sample::reports() {
        let forms = [text(&report, false, 80), markdown(&report), html(&report), json(&report).to_string()];
        for (form, shown) in forms.iter().enumerate() {
            assert!(!shown.contains(SECRET), "{name}, form {form}");
            assert!(shown.contains("(hidden)"), "{name}, form {form}");
            assert!(
                !shown.contains('\x1b') && !shown.contains('\u{202e}') || form == 3,
                "{name}, form {form}"
            );
        }
    }
}

#[test]
fn every_caveat_is_in_every_form() {
    for (name, report) in sample::reports() {
        let forms = [text(&report, false, 200), markdown(&report), html(&report), json(&report).to_string()];
        for (form, shown) in forms.iter().enumerate() {
            // Words of one line in each form: wrapping and escaping leave them alone.
            assert!(shown.contains("Few cores"), "{name}, form {form}");
            assert!(shown.contains("(steal)"), "{name}, form {form}");
        }
    }
}

#[test]
fn a_load_at_its_own_limit_is_never_reported_as_the_servers() {
    let reports = sample::reports();
    let (_, report) = reports.iter().find(|(name, _)| *name == "limited").unwrap();
    for shown in [text(report, false, 200), markdown(report), html(report)] {
        assert!(shown.contains("The load reached its own limit at 210,400 answers per second"));
        assert!(shown.contains("-t 2"), "the next step");
        assert!(!shown.contains("good answers per second"), "the rate is not told as the server's");
        assert!(shown.contains("\u{2265}"), "the table says that it is a lower bound");
    }
    assert_eq!(json(report)["loads"][0]["runs"][0]["rate_is_a_lower_bound"], true);
}

#[test]
fn without_a_good_answer_the_failures_head_the_report_and_no_limit_is_reported() {
    let reports = sample::reports();
    let (_, report) = reports.iter().find(|(name, _)| *name == "failed").unwrap();
    for shown in [text(report, false, 200), markdown(report), html(report)] {
        assert!(shown.contains("Not one good answer: 500 without a connection and 24 closed"), "{shown}");
        assert!(!shown.contains("own limit at") && !shown.contains('\u{2265}'), "{shown}");
    }
    assert_eq!(json(report)["loads"][0]["runs"][0]["rate_is_a_lower_bound"], false);
}

#[test]
fn rows_of_spoiled_samples_have_no_value_and_rates_of_a_limited_load_are_lower_bounds() {
    let reports = sample::reports();
    let (_, report) = reports.iter().find(|(name, _)| *name == "limited_arms").unwrap();
    let shown = text(report, false, 120);
    let row = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("Requests per second").matches('\u{2265}').count() == 2, "{shown}");
    assert!(
        !row("Latency p99").contains(char::is_numeric) || row("Latency p99").matches('\u{2013}').count() == 3,
        "{shown}"
    );
    let json = json(report);
    for row in json["comparison"]["rows"].as_array().unwrap() {
        assert_eq!(row["control_value"].is_null(), row["pairs"] == 0, "{row}");
    }
}

#[test]
fn every_page_is_well_formed_whole_and_small() {
    for (name, report) in sample::reports() {
        let page = html(&report);
        check_tags(name, &page);
        assert!(page.len() < PAGE_BYTES_MAX, "{name}: {} bytes", page.len());
        let lower = page.to_lowercase();
        for loading in
            ["src=", "<link", "@import", "url(", "<script", "<iframe", "<img", "onerror=\"", "href="]
        {
            // What is escaped is text; an unescaped sign before it would make it more.
            let is_markup = |at: usize| !within_text(&lower, at);
            let found = lower.match_indices(loading).find(|(at, _)| is_markup(*at));
            assert!(found.is_none(), "{name}: {loading} at {found:?}");
        }
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
        let pictures = page.matches("<svg").count();
        assert_eq!(page.matches("role=\"img\"").count(), pictures, "{name}");
        assert_eq!(page.matches("<title id=").count(), pictures, "{name}");
        assert_eq!(page.matches("<desc id=").count(), pictures, "{name}");
        assert_eq!(page.matches("<figure>").count() * 2, pictures, "{name}: a wide and a narrow one");
        assert_eq!(page.matches("<figure>").count(), page.matches("<details>").count(), "{name}");
        assert_eq!(page.matches("<table>").count(), page.matches("<caption>").count(), "{name}");
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{name}");
    }
}

/// Whether the place lies between tags.
fn within_text(page: &str, at: usize) -> bool {
    let before = &page[..at];
    before.rfind('>') > before.rfind('<')
}

/// Each element is closed, in order; each attribute is quoted; ids are unique.
fn check_tags(name: &str, page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = std::collections::HashSet::new();
    for piece in page.split('<').skip(1) {
        let (tag, text) =
            piece.split_once('>').unwrap_or_else(|| panic!("{name}: a tag without its end: {piece}"));
        assert!(!text.contains('>') || open.last() == Some(&"style"), "{name}: a bare `>` in {text}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{name}: quotes of {tag}");
        for id in tag.match_indices(" id=\"").map(|(at, _)| tag[at + 5..].split('"').next().unwrap()) {
            assert!(ids.insert(id.to_owned()), "{name}: {id} twice");
        }
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if !tag.ends_with('/') && !tag.starts_with("!doctype") && !tag.starts_with("meta") {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{name}: {open:?}");
}

#[test]
fn a_server_that_is_far_behind_has_its_own_rate_and_nothing_due_in_time_was_answered() {
    let shown = text(&sample::overloaded(), false, 120);
    let lead = "480 good answers per second of 4,800 asked for, all to requests that were due before the measured time";
    assert!(shown.replace('\n', " ").contains(lead), "{shown}");
    assert!(!shown.contains("Not one good answer"), "{shown}");
}

#[test]
fn caveats_have_codes_for_programs() {
    for (name, report) in sample::reports() {
        let reported = json(&report);
        let caveats = reported["caveats"].as_array().unwrap();
        assert!(caveats.iter().any(|caveat| caveat["code"] == "few_cores"), "{name}: {caveats:?}");
        assert!(caveats.iter().all(|caveat| caveat["text"].is_string()), "{name}: {caveats:?}");
    }
}

#[test]
fn a_report_begins_with_its_result_and_fits_fifteen_lines() {
    for (name, report) in sample::reports() {
        // `try` ends with the Onehopfile to use, which must not be left out.
        if matches!(report.findings, super::Findings::SideBySide(_)) {
            assert_eq!(brief(&report, false, 80), text(&report, false, 80), "{name}");
            continue;
        }
        for width in WIDTHS {
            let shown = brief(&report, false, width);
            assert!(shown.lines().count() <= 15, "{name} at {width}: {shown}");
            assert!(shown.lines().all(|line| line.chars().count() <= width), "{name} at {width}: {shown}");
            assert!(!shown.contains(SECRET), "{name}: {shown}");
        }
        insta::assert_snapshot!(format!("brief_{name}"), brief(&report, false, 100));
    }
    insta::assert_snapshot!("brief_overloaded", brief(&sample::overloaded(), false, 100));
}
