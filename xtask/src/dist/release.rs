//! What all packages of a release share: its version, its time, texts of the checkout, the templates' language.

use crate::{Outcome, workspace};

/// Where no maintainer is named; a mail to it goes nowhere.
const MAINTAINER: &str = "The onehop maintainers <maintainers@onehop.invalid>";

/// A release in the making.
pub(super) struct Release {
    pub(super) version: String,
    /// Seconds since 1970 that every time in a package is.
    pub(super) epoch: u64,
    /// `Name <address>`.
    pub(super) maintainer: String,
    pub(super) licence: Vec<u8>,
    pub(super) changelog: Vec<u8>,
}

impl Release {
    /// The one that the checkout holds.
    pub(super) fn of_checkout(maintainer: Option<String>) -> Outcome<Release> {
        let read = |name: &str| {
            std::fs::read(workspace::root().join(name)).map_err(|error| format!("{name}: {error}"))
        };
        Ok(Release {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch: epoch()?,
            maintainer: maintainer.unwrap_or_else(|| MAINTAINER.to_owned()),
            licence: read("LICENSE")?,
            changelog: read("CHANGELOG.md")?,
        })
    }

    /// The time as `date` writes it with this format.
    pub(super) fn date(&self, format: &str) -> Outcome<String> {
        let text = workspace::output_of(
            "env",
            &["LC_ALL=C", "date", "-u", "-d", &format!("@{}", self.epoch), format],
        );
        text.ok_or_else(|| format!("cannot write the time {} as {format}", self.epoch).into())
    }

    /// A template with `@NAME@` replaced by the value of that name, `@VERSION@` and `@MAINTAINER@` among them.
    pub(super) fn fill(&self, template: &str, values: &[(&str, &str)]) -> Outcome<String> {
        let own = [("VERSION", self.version.as_str()), ("MAINTAINER", self.maintainer.as_str())];
        let is_name =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_'));
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('@') {
            text.push_str(before);
            match after.split_once('@').filter(|(word, _)| is_name(word)) {
                Some((name, after)) => {
                    let value = own.iter().chain(values).find(|(known, _)| *known == name);
                    text.push_str(
                        value.ok_or_else(|| format!("a template names @{name}@, which has no value"))?.1,
                    );
                    rest = after;
                }
                None => {
                    text.push('@');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        Ok(text)
    }
}

/// The environment's, as <https://reproducible-builds.org/specs/source-date-epoch/> has it, else the commit's.
fn epoch() -> Outcome<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.trim().parse().map_err(|_| format!("SOURCE_DATE_EPOCH is {text:?}, not seconds").into());
    }
    let root = workspace::root().display().to_string();
    workspace::output_of("git", &["-C", &root, "log", "-1", "--format=%ct"])
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| "this is no git checkout: say the release's time with SOURCE_DATE_EPOCH".into())
}
