//! `onehop workers`: the processes of applications, as a table or as JSON, and how many they are.

use std::time::Duration;

use serde_json::Value;

use super::control::ask;
use super::status::{reason, serving};
use crate::arguments::Workers;
use crate::control_client::{list, number, text};
use crate::failure::Failure;
use crate::table::{Column, table};
use crate::units::{bytes, counted, duration};

pub(crate) fn workers(arguments: &Workers) -> Result<(), Failure> {
    let (name, wanted) = read(&arguments.words)?;
    let response = ask(&arguments.target, "GET", "/status")?;
    let apps = list(&response.body, "apps");
    let chosen = choose(apps, name, wanted.is_some())?;
    let chosen = match wanted {
        None => chosen,
        Some(wanted) => {
            let app = chosen.first().map(|app| text(app, "app")).unwrap_or_default();
            vec![ask(&arguments.target, "POST", &format!("/workers/{app}/{wanted}"))?.body]
        }
    };
    if arguments.json {
        super::standard_output::print(&format!("{}\n", Value::Array(chosen)));
    } else {
        super::standard_output::print(&page(&chosen));
    }
    Ok(())
}

/// A name and a number, a name, a number, or nothing.
fn read(words: &[String]) -> Result<(Option<&str>, Option<u64>), Failure> {
    let count = |word: &str| match word.parse::<u64>() {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Err(Failure::wrong(format!(
            "{word:?} is no number of workers\n  for example: onehop workers api 4"
        ))),
    };
    match words {
        [] => Ok((None, None)),
        [only] if only.bytes().all(|byte| byte.is_ascii_digit()) => Ok((None, count(only)?)),
        [name] => Ok((Some(name), None)),
        [name, wanted, ..] => Ok((Some(name), count(wanted)?)),
    }
}

/// The applications that are meant; exactly one where something is to be changed.
fn choose(apps: &[Value], name: Option<&str>, one: bool) -> Result<Vec<Value>, Failure> {
    let names = || apps.iter().map(|app| text(app, "app")).collect::<Vec<_>>().join(", ");
    match name {
        _ if apps.is_empty() => Err(Failure::failed(
            "this onehop runs no application\n  an Onehopfile names one: app /api/* ./api/server.mjs",
        )),
        None if one && apps.len() > 1 => Err(Failure::wrong(format!("which of them? There are {}", names()))),
        None => Ok(apps.to_vec()),
        Some(name) => match apps.iter().find(|app| text(app, "app") == name) {
            Some(app) => Ok(vec![app.clone()]),
            None => Err(Failure::failed(format!("there is no application {name:?}; there are {}", names()))),
        },
    }
}

fn page(apps: &[Value]) -> String {
    let mut page = String::new();
    for app in apps {
        page.push_str(&format!(
            "{}: {}, {} of {}, {} waiting, {}\n",
            text(app, "app"),
            text(app, "state"),
            serving(app),
            counted(number(app, "wanted"), "worker"),
            counted(number(app, "queued"), "request"),
            counted(number(app, "failures"), "failure"),
        ));
        page.push_str(&reason(app));
    }
    let rows = apps.iter().flat_map(|app| list(app, "workers").iter().map(move |worker| row(app, worker)));
    let columns = [
        Column::Left("APP"),
        Column::Right("PID"),
        Column::Left("STATE"),
        Column::Left("SPEAKS"),
        Column::Right("IN FLIGHT"),
        Column::Right("REQUESTS"),
        Column::Right("AGE"),
        Column::Right("MEMORY"),
        Column::Right("LAG"),
    ];
    page.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
    page
}

fn row(app: &Value, worker: &Value) -> Vec<String> {
    let lag = worker.get("lag_ms").and_then(Value::as_f64).unwrap_or_default();
    vec![
        text(app, "app").to_owned(),
        match number(worker, "pid") {
            // Not started yet.
            0 => "-".to_owned(),
            pid => pid.to_string(),
        },
        text(worker, "state").to_owned(),
        worker.get("protocol").and_then(Value::as_str).unwrap_or("-").to_owned(),
        in_flight(worker),
        number(worker, "requests").to_string(),
        duration(Duration::from_secs(number(worker, "age_seconds"))),
        // A program that speaks HTTP does not say how it is.
        match number(worker, "resident_bytes") {
            0 => "-".to_owned(),
            resident => bytes(resident),
        },
        format!("{lag:.1} ms"),
    ]
}

/// With how many it is handed at a time, once that is known.
fn in_flight(worker: &Value) -> String {
    match number(worker, "concurrency") {
        0 => number(worker, "in_flight").to_string(),
        bound => format!("{} of {bound}", number(worker, "in_flight")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apps() -> Value {
        let worker = |pid: u32, state: &str, resident: u64| {
            serde_json::json!({
                "pid": pid, "state": state, "protocol": "frames", "in_flight": 3, "concurrency": 256,
                "requests": 12_345, "age_seconds": 11_520,
                "resident_bytes": resident, "lag_ms": 1.25,
            })
        };
        serde_json::json!([
            {"app": "api", "state": "serving", "reason": null, "wanted": 3, "queued": 0, "failures": 1,
             "workers": [worker(4711, "serving", 50_123_456), worker(104_712, "draining", 0),
                         worker(104_713, "starting", 0), worker(104_714, "stuck", 0)]},
            {"app": "next", "state": "failing", "reason": "exited with code 1\nError: no build\n", "wanted": 1,
             "queued": 12, "failures": 7, "workers": []},
        ])
    }

    #[test]
    fn workers_stand_in_columns_below_their_applications() {
        insta::assert_snapshot!(page(apps().as_array().expect("a list")));
    }

    #[test]
    fn only_those_that_serve_are_counted() {
        let page = page(apps().as_array().expect("a list"));
        assert!(page.starts_with("api: serving, 1 of 3 workers, "), "{page}");
    }

    #[test]
    fn one_application_needs_no_name_to_be_changed_and_several_do() {
        let apps = apps();
        let apps = apps.as_array().expect("a list");
        assert_eq!(choose(apps, None, false).expect("all").len(), 2);
        assert!(choose(apps, None, true).is_err());
        assert_eq!(choose(&apps[..1], None, true).expect("the only one").len(), 1);
        assert!(choose(apps, Some("ape"), false).is_err());
        assert!(choose(&[], None, false).is_err());
        for (words, expected) in [
            (&[][..], Some((None, None))),
            (&["api"], Some((Some("api"), None))),
            (&["4"], Some((None, Some(4)))),
            (&["api", "4"], Some((Some("api"), Some(4)))),
            (&["api", "0"], None),
            (&["0"], None),
            (&["api", "many"], None),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(read(&words).ok(), expected, "{words:?}");
        }
    }
}
