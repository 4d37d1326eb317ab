//! Text with placeholders, split once here so that no request has to.
//!
//! Braces that do not look like a placeholder stay text (a JSON body); a placeholder that does not
//! exist is an error, since Caddy would serve it as it stands.

use super::Reading;
use super::placeholder::{self, Meaning};
use crate::checked::{Part, Placeholder, Template};
use crate::problem::{Location, Problem};
use crate::syntax::Token;

/// Reads a token as a template.
pub(crate) fn template(reading: Reading<'_>, token: &Token) -> Result<Template, Box<Problem>> {
    read(reading, &token.text, &token.place)
}

/// The same where an upstream has been chosen: what says which one has a meaning there.
pub(crate) fn template_of_upstream(reading: Reading<'_>, token: &Token) -> Result<Template, Box<Problem>> {
    read_all(reading, &token.text, &token.place)
}

/// Reads a token that must be known before any request; `{env.NAME}` may stand in it.
pub(crate) fn fixed(reading: Reading<'_>, token: &Token, what: &str) -> Result<String, Box<Problem>> {
    let template = template(reading, token)?;
    match template.as_text() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Problem::error("not-yet", &token.place, format!("{what} cannot have placeholders yet"))
            .help("write it out; `{env.NAME}` and `{$NAME}` work here, too")),
    }
}

/// Reads a text with placeholders; errors point at `place`.
pub(crate) fn read(reading: Reading<'_>, text: &str, place: &Location) -> Result<Template, Box<Problem>> {
    let template = read_all(reading, text, place)?;
    let is_of_upstream = |part: &Part| {
        use Placeholder as P;
        matches!(part, Part::Value(P::UpstreamHostPort | P::UpstreamHost | P::UpstreamPort))
    };
    if template.parts.iter().any(is_of_upstream) {
        let message = "a placeholder of the chosen upstream has no meaning here yet";
        return Err(Problem::error("not-yet", place, message)
            .help("it works in `header_up` and `header_down` of a `reverse_proxy`"));
    }
    Ok(template)
}

fn read_all(reading: Reading<'_>, text: &str, place: &Location) -> Result<Template, Box<Problem>> {
    let mut builder = Builder::default();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '\\']) {
        let (before, from) = rest.split_at(at);
        builder.text.push_str(before);
        // Caddy takes the backslash off an escaped brace.
        if let Some(escaped) = from.strip_prefix('\\') {
            if escaped.starts_with(['{', '}']) {
                let (brace, after) = escaped.split_at(1);
                builder.text.push_str(brace);
                rest = after;
            } else {
                builder.text.push('\\');
                rest = escaped;
            }
            continue;
        }
        let Some(close) = from.find('}').filter(|_| from.starts_with('{')) else {
            let (brace, after) = from.split_at(1);
            builder.text.push_str(brace);
            rest = after;
            continue;
        };
        let key = from.get(1..close).unwrap_or_default();
        if placeholder::has_shape(key) {
            let written = place.narrowed_to(from.get(..=close).unwrap_or_default());
            match placeholder::meaning(key, &written)? {
                Meaning::Value(value) => {
                    must_be_known(reading, &value, key, &written)?;
                    builder.value(value);
                }
                Meaning::Environment(name) => builder.text.push_str(&reading.env(name).unwrap_or_default()),
            }
            rest = from.get(close + 1..).unwrap_or_default();
        } else {
            builder.text.push('{');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    builder.text.push_str(rest);
    Ok(builder.finish())
}

/// There is no error before a request has failed.
fn must_be_known(
    reading: Reading<'_>,
    value: &Placeholder,
    key: &str,
    written: &Location,
) -> Result<(), Box<Problem>> {
    use Placeholder as P;
    if reading.is_of_error
        || !matches!(value, P::ErrorStatus | P::ErrorStatusText | P::ErrorMessage | P::ErrorId)
    {
        return Ok(());
    }
    let message = format!("`{{{key}}}` has a meaning within `handle_errors` alone");
    Err(Problem::error("placeholder", written, message)
        .help(format!("for the text itself, write `\\{{{key}\\}}`")))
}

#[derive(Default)]
struct Builder {
    parts: Vec<Part>,
    text: String,
}

impl Builder {
    fn value(&mut self, value: Placeholder) {
        self.flush();
        self.parts.push(Part::Value(value));
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }

    fn finish(mut self) -> Template {
        self.flush();
        Template { parts: self.parts }
    }
}
