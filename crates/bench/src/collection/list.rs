//! A text with one URL per line: `URL` or `METHOD URL`; `#` begins a comment.

use onehop_load::plan::{Expect, Protocol, Request};
use onehop_load::url::Url;

use super::limits::REQUESTS_MAX;
use super::problem::Problem;
use super::variables::Variables;
use super::{Collection, check, nowhere};

const MEND: &str = "Mend the line, or leave it out with `#`.";

pub(super) fn read(text: &str, variables: &mut Variables) -> Result<Collection, Problem> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("line {}", index + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if requests.len() == REQUESTS_MAX {
            let cause = format!("there are more than {REQUESTS_MAX} requests");
            return Err(Problem::at(place, cause, "Split the file."));
        }
        requests.push(request(line, variables).map_err(|problem| problem.placed(place))?);
    }
    if requests.is_empty() {
        return Err(Problem::new("no URL stands in it", "Write one URL per line, `METHOD URL` or `URL`."));
    }
    Ok(Collection { name: String::new(), requests, notes: Vec::new(), varying: Default::default() })
}

fn request(line: &str, variables: &mut Variables) -> Result<Request, Problem> {
    let filled = variables.fill(line)?;
    // A comment behind a URL has a space before it; without one `#` begins a fragment.
    let words: Vec<&str> = filled.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
    let (method, url) = match words.as_slice() {
        [url] => ("GET", *url),
        [method, url] if method.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-') => {
            (*method, *url)
        }
        _ => {
            let cause = format!("`{line}` is neither `URL` nor `METHOD URL`");
            return Err(Problem::new(cause, "A space in a URL is written %20, a method in capitals."));
        }
    };
    let parsed = Url::parse(url).map_err(|error| Problem::new(error.to_string(), MEND))?;
    let request = Request {
        name: if words.len() == 1 { url.to_owned() } else { format!("{method} {url}") },
        url: parsed,
        address: nowhere(),
        tls: None,
        protocol: Protocol::Http1,
        method: method.to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    };
    check(&request, MEND)?;
    Ok(request)
}
