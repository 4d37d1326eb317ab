//! Why a command did not do what was asked, and the exit code that says so to a script.

use std::process::ExitCode;

use crate::arguments::LogForm;
use crate::report::json;

/// An error for a person: place, cause and next step are in its text.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Cause,
    text: Text,
    log: LogForm,
}

/// What a script sees as the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The world did not play along: exit code 1.
    World,
    /// What was typed or written is wrong: exit code 2, as clap has it.
    Input,
}

#[derive(Debug)]
enum Text {
    /// A sentence, still without its `error:`.
    Sentence(String),
    /// A report that is complete.
    Rendered(String),
}

impl Failure {
    /// Something failed although what was asked is sound.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self { cause: Cause::World, text: Text::Sentence(sentence.into()), log: LogForm::Plain }
    }

    /// What was asked or configured is wrong.
    pub(crate) fn wrong(sentence: impl Into<String>) -> Self {
        Self { cause: Cause::Input, text: Text::Sentence(sentence.into()), log: LogForm::Plain }
    }

    /// The configuration is wrong, and the report that says where is already drawn.
    pub(crate) fn drawn(report: String) -> Self {
        Self { cause: Cause::Input, text: Text::Rendered(report), log: LogForm::Plain }
    }

    /// The same, told in the form that the log has.
    pub(crate) fn in_form(self, log: LogForm) -> Self {
        Self { log, ..self }
    }

    /// Its first line.
    pub(crate) fn first_line(&self) -> String {
        let (Text::Sentence(text) | Text::Rendered(text)) = &self.text;
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Writes it to standard error and gives the exit code.
    pub(crate) fn show(&self) -> ExitCode {
        let text = match (&self.text, self.log) {
            (Text::Sentence(text) | Text::Rendered(text), LogForm::Json) => json::failed(text),
            (Text::Sentence(text), LogForm::Plain) => format!("error: {text}"),
            (Text::Rendered(text), LogForm::Plain) => text.trim_end().to_owned(),
        };
        crate::report::write_line(&text);
        ExitCode::from(match self.cause {
            Cause::World => 1,
            Cause::Input => 2,
        })
    }
}
