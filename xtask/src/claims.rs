//! `cargo xtask claims`: what pages say of other servers is what committed results support.
//!
//! `benchmarks/claims.toml` names for each table its page and a file of results, and for each row the case, the two servers
//! and the words. A table on a page is between `<!-- claims NAME -->` and `<!-- end of claims -->` and is generated. It is
//! an error where the interval of the ratio does not support the words, and where the page has another table.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::workspace::{self, Options};

const CLAIMS: &str = "benchmarks/claims.toml";
/// The pages that have tables.
const PAGES: [&str; 3] = ["README.md", "benchmarks/README.md", "docs/experiments.md"];
/// The server that claims are about: the first of every scenario.
const OURS: &str = "onehop";

const END: &str = "<!-- end of claims -->";

const HEAD: &str = "\
    | case | onehop | the other | ratio, 99 % interval | rounds | verdict |\n\
    | --- | --- | --- | --- | --- | --- |\n";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    table: Vec<Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// As its page names it.
    name: String,
    /// The page that has it.
    page: String,
    /// The file of results, below benchmarks/results.
    results: String,
    /// What made them.
    command: String,
    row: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What a reader is told.
    text: String,
    /// The case in the results.
    case: String,
    /// Whom it is compared with; the other one is `onehop`.
    against: String,
    /// Its file of results, where that is another one than the table's.
    results: Option<String>,
    #[serde(default)]
    figure: Figure,
    says: Says,
}

/// What is compared: less of it is better, but of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Figure {
    /// CPU time per request.
    #[default]
    Cpu,
    /// From the start of the program to its first answer.
    Start,
    /// Median resident memory under load.
    Memory,
    /// Memory that each idle connection adds.
    Idle,
    /// Memory before the first connection.
    Rest,
    /// Good responses per second.
    Rate,
    /// Median latency.
    P50,
    /// 99th percentile of latency.
    P99,
    /// From the end of an overload until responses are normal again.
    Recovery,
}

/// What the interval of onehop's figure divided by the other's has to show, as `onehop bench compare` judges it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Says {
    /// onehop's is less.
    Less,
    /// onehop's is more.
    More,
    /// No difference is shown.
    Undecided,
}

/// Compares the pages with the results, or writes their tables anew.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let is_written = options.flag("--write");
    options.finish()?;
    let root = workspace::root();
    let claims: Claims = toml::from_str(&fs::read_to_string(root.join(CLAIMS))?)
        .map_err(|error| format!("{CLAIMS}: {error}"))?;
    if let Some(table) = claims.table.iter().find(|table| !PAGES.contains(&table.page.as_str())) {
        return Err(format!(
            "{CLAIMS}: `{}` has the page {}, and may have {PAGES:?}",
            table.name, table.page
        )
        .into());
    }
    for page in PAGES {
        let text = fs::read_to_string(root.join(page))?;
        let mut wanted = text.clone();
        for table in claims.table.iter().filter(|table| table.page == page) {
            wanted = put(&wanted, page, &table.name, &table.text(&root)?)?;
        }
        if is_written {
            fs::write(root.join(page), wanted)?;
        } else if wanted != text {
            return Err(format!(
                "{page} differs from {CLAIMS}: `cargo xtask claims --write` makes its tables anew"
            )
            .into());
        }
    }
    println!("claims: {} tables, all supported by their results", claims.table.len());
    Ok(())
}

impl Table {
    /// In Markdown.
    fn text(&self, root: &Path) -> Outcome<String> {
        let mut text = HEAD.to_owned();
        let mut sources: Vec<String> = Vec::new();
        for row in &self.row {
            let file = row.results.as_ref().unwrap_or(&self.results);
            let path = format!("benchmarks/results/{file}");
            let results: Value = serde_json::from_str(
                &fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?,
            )?;
            let found =
                row.found(&results).map_err(|why| format!("{CLAIMS}: `{}` in {path}: {why}", row.text))?;
            let Found { ours, others, low, middle, high, pairs, .. } = found;
            let unit = row.figure.unit();
            text.push_str(&format!(
                "| {} | {ours:.1} {unit} | {}: {others:.1} {unit} | {middle:.2} ({low:.2} to {high:.2}) | {pairs} | {} |\n",
                row.text,
                row.against,
                row.says.words()
            ));
            let source = self.source(file, &results);
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        text.push_str(&format!("\n`{}`; {}.\n", self.command, sources.join("; ")));
        Ok(text)
    }

    /// A file of results as a link, with its date and machine.
    fn source(&self, file: &str, results: &Value) -> String {
        let date = results["date"].as_str().and_then(|date| date.get(..10)).unwrap_or("without a date");
        let machine = results["machine"]["processor"].as_str().unwrap_or("an unknown processor");
        let cores = &results["machine"]["cores"];
        let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".json");
        let folder = match self.page.rsplit_once('/') {
            None => "benchmarks/results",
            Some(("benchmarks", _)) => "results",
            Some(_) => "../benchmarks/results",
        };
        format!("[{name}]({folder}/{file}), {date}, {machine}, {cores} cores")
    }
}

impl Figure {
    /// Its name in results.
    fn name(self) -> &'static str {
        match self {
            Figure::Cpu => "cpu_us_per_request",
            Figure::Start => "cold_start_us",
            Figure::Memory => "memory_median_bytes",
            Figure::Idle => "memory_per_idle_connection_bytes",
            Figure::Rest => "memory_at_rest_bytes",
            Figure::Rate => "rate_per_second",
            Figure::P50 => "p50_us",
            Figure::P99 => "p99_us",
            Figure::Recovery => "recovery_us",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Figure::Cpu | Figure::P50 => "us",
            Figure::Start | Figure::P99 => "ms",
            Figure::Memory | Figure::Rest => "MiB",
            Figure::Rate => "/s",
            Figure::Recovery => "s",
            Figure::Idle => "KiB",
        }
    }

    /// How many of a result's unit are one of the table's.
    fn scale(self) -> f64 {
        match self {
            Figure::Cpu | Figure::P50 | Figure::Rate => 1.0,
            Figure::Start | Figure::P99 => 1e3,
            Figure::Memory | Figure::Rest => (1 << 20) as f64,
            Figure::Recovery => 1e6,
            Figure::Idle => 1024.0,
        }
    }
}

/// What a result says of a claim, in the table's unit; the ratio is onehop's figure divided by the other's.
#[derive(Debug, PartialEq)]
struct Found {
    ours: f64,
    others: f64,
    low: f64,
    middle: f64,
    high: f64,
    pairs: u64,
    says: Says,
}

impl Row {
    /// What the result says, where it is what the claim says.
    fn found(&self, results: &Value) -> Result<Found, String> {
        let found =
            self.read(results).ok_or("the result has no such figure of these two servers: measure it")?;
        if found.says == self.says {
            return Ok(found);
        }
        Err(format!(
            "it says \"{}\", and the ratio of {:.2} to {:.2} carries \"{}\": say that, or measure more rounds",
            self.says.words(),
            found.low,
            found.high,
            found.says.words()
        ))
    }

    /// The row of the result. There the first server, onehop, is the control, and ratios are those of the other one.
    fn read(&self, results: &Value) -> Option<Found> {
        let is_case = |case: &&Value| case["name"] == self.case.as_str();
        let case = results["scenario"]["cases"].as_array()?.iter().find(is_case)?;
        let is_row = |row: &&Value| {
            row["control"] == OURS
                && row["test"] == self.against.as_str()
                && row["metric"] == self.figure.name()
        };
        let row = case["comparison"]["rows"].as_array()?.iter().find(is_row)?;
        let number = |name: &str| row[name].as_f64();
        Some(Found {
            ours: number("control_value")? / self.figure.scale(),
            others: number("test_value")? / self.figure.scale(),
            low: 1.0 / number("ratio_high")?,
            middle: 1.0 / number("ratio")?,
            high: 1.0 / number("ratio_low")?,
            pairs: row["pairs"].as_u64()?,
            says: match row["verdict"].as_str()? {
                "less" => Says::More,
                "more" => Says::Less,
                "no_difference_shown" => Says::Undecided,
                _ => return None,
            },
        })
    }
}

impl Says {
    fn words(self) -> &'static str {
        match self {
            Says::Less => "less",
            Says::More => "more",
            Says::Undecided => "no difference shown",
        }
    }
}

/// The text with this between the marks of that name.
fn put(text: &str, page: &str, name: &str, table: &str) -> Outcome<String> {
    let mark = format!("<!-- claims {name} -->\n");
    let missing = || format!("{page} has no `{}` with `{END}` behind it", mark.trim_end());
    let (before, rest) = text.split_once(&mark).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{mark}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(verdict: &str) -> Value {
        let row = json!({
            "control": "onehop", "test": "nginx", "metric": "cpu_us_per_request", "control_value": 6.0,
            "test_value": 12.0, "ratio": 2.0, "ratio_low": 1.6, "ratio_high": 2.5, "pairs": 15, "verdict": verdict,
        });
        json!({ "scenario": { "cases": [{ "name": "page", "comparison": { "rows": [row] } }] } })
    }

    fn row(case: &str, says: Says) -> Row {
        let [text, case, against] = ["a page", case, "nginx"].map(str::to_owned);
        Row { text, case, against, results: None, figure: Figure::Cpu, says }
    }

    #[test]
    fn words_that_a_result_does_not_carry_are_an_error() {
        // The other server takes more: ours takes less.
        let found = row("page", Says::Less).found(&results("more")).unwrap();
        assert_eq!((found.low, found.middle, found.high), (0.4, 0.5, 0.625));
        assert_eq!((found.ours, found.others, found.pairs), (6.0, 12.0, 15));
        assert!(row("page", Says::More).found(&results("less")).is_ok());
        assert!(row("page", Says::Undecided).found(&results("no_difference_shown")).is_ok());
        for (says, verdict) in
            [(Says::Less, "less"), (Says::Less, "no_difference_shown"), (Says::Undecided, "more")]
        {
            let error = row("page", says).found(&results(verdict)).unwrap_err();
            assert!(error.contains("measure more rounds"), "{error}");
        }
        for missing in [
            row("page", Says::Less).found(&results("unknown")),
            row("other", Says::Less).found(&results("more")),
        ] {
            assert!(missing.unwrap_err().contains("no such figure"));
        }
    }

    #[test]
    fn a_table_goes_between_its_marks() {
        let text = format!("a\n<!-- claims x -->\nold\n{END}\nb\n");
        assert_eq!(
            put(&text, "page", "x", "new\n").unwrap(),
            format!("a\n<!-- claims x -->\nnew\n{END}\nb\n")
        );
        assert!(put(&text, "page", "y", "new\n").unwrap_err().to_string().contains("<!-- claims y -->"));
    }
}
