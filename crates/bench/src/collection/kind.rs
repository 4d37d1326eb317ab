//! What kind of collection a text is.
//!
//! Owns telling them apart, and what to do with kinds that are not read.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::problem::Problem;

/// A kind that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postman,
    Har,
    List,
}

/// The keys by which JSON files of this world are known.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shape {
    log: Option<IgnoredAny>,
    item: Option<IgnoredAny>,
    collection: Option<IgnoredAny>,
    info: Option<serde_json::Value>,
    requests: Option<IgnoredAny>,
    values: Option<IgnoredAny>,
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
    #[serde(rename = "_type")]
    insomnia: Option<IgnoredAny>,
}

const EXPORT: &str = "Export the collection from Postman as \"Collection v2.1\".";

pub(super) fn of(text: &str) -> Result<Kind, Problem> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(Kind::List);
    }
    if text.trim_start().starts_with('[') {
        return Err(Problem::new(
            "it is a JSON array, and no kind of collection is one",
            "Give a Postman collection v2.1, a HAR, or a text with one URL per line.",
        ));
    }
    let shape: Shape = serde_json::from_str(text).map_err(|error| of_json(&error))?;
    if shape.log.is_some() {
        return Ok(Kind::Har);
    }
    if shape.item.is_some() || shape.collection.is_some() {
        let schema =
            shape.info.as_ref().and_then(|info| info.get("schema")).and_then(|schema| schema.as_str());
        return match schema {
            Some(schema) if schema.contains("/v2.0") => Err(Problem::at(
                "/info/schema",
                "this is a Postman collection v2.0, and v2.1 is read",
                EXPORT,
            )),
            _ => Ok(Kind::Postman),
        };
    }
    Err(if shape.requests.is_some() {
        Problem::new("this is a Postman collection v1, and v2.1 is read", EXPORT)
    } else if shape.values.is_some() {
        Problem::new(
            "this is a Postman environment and holds no requests",
            "Give the collection, and this file with --environment.",
        )
    } else if shape.openapi.is_some() || shape.swagger.is_some() {
        Problem::new(
            "this is an OpenAPI description, which says what could be asked and not what is asked",
            "Import it into Postman and export a collection, or write one URL per line.",
        )
    } else if shape.insomnia.is_some() {
        Problem::new("this is an export of Insomnia", "Export it from there as HAR.")
    } else {
        Problem::new(
            "it is JSON, and neither a Postman collection (no `item`) nor a HAR (no `log`)",
            "Give a Postman collection v2.1, a HAR, or a text with one URL per line.",
        )
    })
}

/// What the JSON parser said.
pub(super) fn of_json(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let cause = text.rsplit_once(" at line ").map_or(text.as_str(), |(cause, _)| cause);
    let place = format!("line {}, column {}", error.line(), error.column());
    let kind = if error.is_data() { "is not what is read there" } else { "is no JSON" };
    Problem::at(
        place,
        format!("the text {kind}: {cause}"),
        "Export the file again, or mend it at that place.",
    )
}
