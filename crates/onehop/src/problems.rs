//! Draws what is wrong in a configuration.
//!
//! On a terminal as miette draws it; elsewhere as compilers write it, so that an editor or `grep` finds
//! the place. Owns looks only; what is wrong and what to do stands in the problem.

use std::io::IsTerminal;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use onehop_config::{Problem, Severity};

use crate::units::counted;

/// How problems are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// `file:line:column: error: …`
    Plain,
    /// Frames, without colour.
    Frames,
    /// Frames and colour.
    Colour,
}

impl Look {
    /// What suits standard error. `NO_COLOR` is honoured where it is not empty (no-color.org).
    pub(crate) fn of_standard_error() -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match (std::io::stderr().is_terminal(), no_colour) {
            (false, _) => Look::Plain,
            (true, true) => Look::Frames,
            (true, false) => Look::Colour,
        }
    }
}

/// All of them, errors counted at the end.
pub(crate) fn draw(problems: &[Problem], look: Look) -> String {
    let mut text = String::new();
    for problem in problems {
        match look {
            Look::Plain => text.push_str(&format!("{problem}\n")),
            Look::Frames => text.push_str(&framed(problem, GraphicalTheme::unicode_nocolor())),
            Look::Colour => text.push_str(&framed(problem, GraphicalTheme::unicode())),
        }
        text.push('\n');
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if errors > 0 {
        text.push_str(&format!("{} in the configuration\n", counted(errors as u64, "error")));
    }
    text
}

fn framed(problem: &Problem, theme: GraphicalTheme) -> String {
    let severity = match problem.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    };
    let label = if problem.label.is_empty() { "here" } else { &problem.label };
    let mut diagnostic = MietteDiagnostic::new(problem.message.clone())
        .with_severity(severity)
        .with_label(LabeledSpan::at(problem.span.clone(), label));
    if let Some(help) = &problem.help {
        diagnostic = diagnostic.with_help(help.clone());
    }
    let source = NamedSource::new(&problem.file.name, problem.file.text.clone());
    let report = Report::new(diagnostic).with_source_code(source);
    let mut text = String::new();
    // Fails only where a place lies outside its text; the plain form always works.
    match GraphicalReportHandler::new_themed(theme).render_report(&mut text, report.as_ref()) {
        Ok(()) => text,
        Err(_) => format!("{problem}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use onehop_config::{Entry, FileKind, Source, load};

    use super::*;

    struct OneFile(&'static str);

    impl Source for OneFile {
        fn read(&self, _: &Path) -> std::io::Result<String> {
            Ok(self.0.to_owned())
        }

        fn entry(&self, _: &Path) -> Option<Entry> {
            None
        }

        fn glob(&self, _: &Path) -> std::io::Result<Vec<PathBuf>> {
            Ok(Vec::new())
        }

        fn env(&self, _: &str) -> Option<String> {
            None
        }

        fn working_directory(&self) -> PathBuf {
            PathBuf::from("/srv")
        }
    }

    fn drawn(text: &'static str, look: Look) -> String {
        let problems = load(Path::new("Onehopfile"), FileKind::Onehopfile, &OneFile(text));
        draw(&problems.expect_err("a broken file"), look)
    }

    #[test]
    fn a_terminal_sees_frames() {
        let text = "http://localhost:8080 {\n\trooot ./dist\n\tencode gzipp\n}\n";
        insta::assert_snapshot!(drawn(text, Look::Frames));
    }

    #[test]
    fn without_colour_there_is_no_escape_sequence() {
        let text = "http://localhost:8080 {\n\trooot ./dist\n";
        for (look, escapes) in [(Look::Plain, false), (Look::Frames, false), (Look::Colour, true)] {
            assert_eq!(drawn(text, look).contains('\x1b'), escapes, "{look:?}");
        }
    }

    #[test]
    fn a_file_that_ends_in_the_middle_is_drawn_too() {
        for text in ["", ":8080 {", ":8080 {\n\trespond \"", "\u{feff}é {\n\trooot é\u{1f980}"] {
            for look in [Look::Plain, Look::Frames, Look::Colour] {
                assert!(drawn(text, look).contains("in the configuration"), "{text:?}");
            }
        }
    }
}
