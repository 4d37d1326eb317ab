//! `cargo xtask claims`: what README says of others is what committed results carry.
//!
//! `benchmarks/claims.toml` names for each table a file of results, and for each row the case, the two servers and the
//! words. A table in README stands between `<!-- claims NAME -->` and `<!-- end of claims -->` and is made of them. It is
//! an error where the interval of the ratio does not carry the words, and where README says something else.

use std::fs;
use std::path::Path;

use onehop_load::compare::Settings;
use onehop_load::statistics::{self, Interval, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::Outcome;
use crate::ground::{self, Options};

const CLAIMS: &str = "benchmarks/claims.toml";
const README: &str = "README.md";
const END: &str = "<!-- end of claims -->";

const HEAD: &str = "\
    | case | onehop | the other | ratio, 99 % interval | rounds | verdict |\n\
    | --- | --- | --- | --- | --- | --- |\n";

/// The seed of the interval's resamples, so that the same results make the same table.
const SEED: u64 = 1;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    table: Vec<Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// As README names it.
    name: String,
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
    #[serde(default)]
    figure: Figure,
    says: Says,
}

/// What is compared: less of it is better.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Figure {
    /// CPU time per request.
    #[default]
    Cpu,
    /// From the start of the program to its first answer.
    Start,
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

/// Compares README with the results, or writes its tables anew.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let is_written = options.flag("--write");
    options.finish()?;
    let root = ground::root();
    let readme = fs::read_to_string(root.join(README))?;
    let claims: Claims = toml::from_str(&fs::read_to_string(root.join(CLAIMS))?)
        .map_err(|error| format!("{CLAIMS}: {error}"))?;
    let mut wanted = readme.clone();
    for table in &claims.table {
        wanted = put(&wanted, &table.name, &table.text(&root)?)?;
    }
    if is_written {
        fs::write(root.join(README), wanted)?;
    } else if wanted != readme {
        return Err(format!(
            "{README} differs from {CLAIMS}: `cargo xtask claims --write` makes its tables anew"
        )
        .into());
    }
    println!("claims: {} tables, all carried by their results", claims.table.len());
    Ok(())
}

impl Table {
    /// In Markdown.
    fn text(&self, root: &Path) -> Outcome<String> {
        let path = format!("benchmarks/results/{}", self.results);
        let results: Value = serde_json::from_str(
            &fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?,
        )?;
        let mut text = HEAD.to_owned();
        for row in &self.row {
            let (others, ours): (Vec<f64>, Vec<f64>) = row.pairs(&results).into_iter().unzip();
            let unit = row.figure.unit();
            let interval = interval(&others, &ours);
            row.check(&interval).map_err(|why| format!("{CLAIMS}: `{}` in {path}: {why}", row.text))?;
            let (other, our) = statistics::estimates(&others, &ours);
            let Interval { middle, low, high, .. } = interval;
            text.push_str(&format!(
                "| {} | {our:.1} {unit} | {}: {other:.1} {unit} | {middle:.2} ({low:.2} to {high:.2}) | {} | {} |\n",
                row.text,
                row.against,
                ours.len(),
                row.says.words()
            ));
        }
        let date = results["date"].as_str().unwrap_or("without a date");
        let machine = results["machine"]["cpu"].as_str().unwrap_or("an unknown processor");
        let cores = &results["machine"]["cores"];
        text.push_str(&format!(
            "\n`{}`, {date}, {machine}, {cores} cores; [{}]({path}).\n",
            self.command, self.name
        ));
        Ok(text)
    }
}

impl Figure {
    /// Its name in results.
    fn name(self) -> &'static str {
        match self {
            Figure::Cpu => "cpu_us_per_request",
            Figure::Start => "start_ms",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Figure::Cpu => "us",
            Figure::Start => "ms",
        }
    }
}

impl Row {
    /// The figure of the other one and of onehop, of each round that has both and spoils neither.
    fn pairs(&self, results: &Value) -> Vec<(f64, f64)> {
        let rows = results["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rows = || rows.iter().filter(|row| row["case"] == self.case.as_str() && row["void"].is_null());
        let of = |arm: &str, round: &Value| {
            let row = rows().find(|row| row["arm"] == arm && &row["round"] == round)?;
            row[self.figure.name()].as_f64().filter(|figure| *figure > 0.0)
        };
        let rounds = rows().filter(|row| row["arm"] == "onehop").map(|row| &row["round"]);
        rounds.filter_map(|round| Some((of(&self.against, round)?, of("onehop", round)?))).collect()
    }

    fn check(&self, interval: &Interval) -> Result<(), String> {
        let Interval { low, high, .. } = *interval;
        let found = match statistics::verdict(interval, Settings::default().least_difference) {
            Verdict::Less => Says::Less,
            Verdict::More => Says::More,
            Verdict::NotShown => Says::Undecided,
            Verdict::Unknown => return Err("too few rounds have both servers: measure more".to_owned()),
        };
        if found == self.says {
            return Ok(());
        }
        let (said, found) = (self.says.words(), found.words());
        Err(format!(
            "it says \"{said}\", and the ratio of {low:.2} to {high:.2} carries \"{found}\": say that, or measure more rounds"
        ))
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

fn interval(others: &[f64], ours: &[f64]) -> Interval {
    statistics::ratio_interval(others, ours, Settings::default().confidence, SEED)
}

/// The text with this between the marks of that name.
fn put(text: &str, name: &str, table: &str) -> Outcome<String> {
    let mark = format!("<!-- claims {name} -->\n");
    let missing = || format!("{README} has no `{}` with `{END}` behind it", mark.trim_end());
    let (before, rest) = text.split_once(&mark).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{mark}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(ours: &[f64], others: &[f64]) -> Value {
        let row = |arm: &str, round: usize, cpu: f64| json!({"case": "page", "arm": arm, "round": round, "void": null, "cpu_us_per_request": cpu});
        let ours = ours.iter().enumerate().map(|(round, cpu)| row("onehop", round, *cpu));
        let others = others.iter().enumerate().map(|(round, cpu)| row("nginx", round, *cpu));
        json!({"rows": ours.chain(others).collect::<Vec<_>>()})
    }

    fn row(says: Says) -> Row {
        let [text, case, against] = ["a page", "page", "nginx"].map(str::to_owned);
        Row { text, case, against, figure: Figure::Cpu, says }
    }

    fn check(says: Says, ours: &[f64], others: &[f64]) -> Result<(), String> {
        let row = row(says);
        let (others, ours): (Vec<f64>, Vec<f64>) = row.pairs(&results(ours, others)).into_iter().unzip();
        row.check(&interval(&others, &ours))
    }

    #[test]
    fn words_that_an_interval_does_not_carry_are_an_error() {
        let (low, high) = ([6.0, 6.1, 6.2, 6.1, 6.0, 6.1], [9.0, 9.2, 9.1, 9.0, 9.1, 9.2]);
        assert_eq!(check(Says::Less, &low, &high), Ok(()));
        assert_eq!(check(Says::More, &high, &low), Ok(()));
        assert_eq!(check(Says::Undecided, &low, &low), Ok(()));
        for (says, ours, others) in
            [(Says::More, low, high), (Says::Less, low, low), (Says::Undecided, low, high)]
        {
            assert!(check(says, &ours, &others).unwrap_err().contains("measure more rounds"));
        }
        // Three rounds that agree by chance decide little, two nothing.
        assert!(check(Says::Less, &[6.0, 8.0, 5.0], &[9.0, 8.5, 9.0]).is_err());
        assert!(check(Says::Less, &low[..2], &high[..2]).unwrap_err().contains("too few rounds"));
    }

    #[test]
    fn a_round_that_is_void_or_has_one_server_only_is_no_pair() {
        let mut some = results(&[6.0, 6.1, 6.2], &[9.0, 9.1]);
        assert_eq!(row(Says::Less).pairs(&some).len(), 2);
        some["rows"][0]["void"] = json!("502");
        assert_eq!(row(Says::Less).pairs(&some), [(9.1, 6.1)]);
        assert!(Row { case: "another".to_owned(), ..row(Says::Less) }.pairs(&some).is_empty());
    }

    #[test]
    fn a_table_goes_between_its_marks() {
        let text = format!("a\n<!-- claims x -->\nold\n{END}\nb\n");
        assert_eq!(put(&text, "x", "new\n").unwrap(), format!("a\n<!-- claims x -->\nnew\n{END}\nb\n"));
        assert!(put(&text, "y", "new\n").unwrap_err().to_string().contains("<!-- claims y -->"));
    }
}
