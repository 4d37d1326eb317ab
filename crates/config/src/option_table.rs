//! Options of a block as tables. A row says what an option is called, what it takes and where its value goes.
//!
//! The same rows give the errors about options that do not exist ("did you mean") or do not work yet, and the outline
//! of all options. Knows no option itself: the rows stand beside the functions that read them.

use std::time::Duration;

use crate::arguments::{no_arguments, one_argument, set_twice, some_arguments, unknown_option, unknown_word};
use crate::check::Context;
use crate::check::value::{number, within};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

type Outcome = Result<(), Box<Problem>>;

/// What an option takes, and the function that puts it into the draft `D` of the settings.
enum Takes<D> {
    /// Nothing: the name alone is the setting.
    Nothing(fn(&mut D)),
    /// One argument.
    Value(for<'a> fn(&mut Context<'_>, &mut D, Value<'a>) -> Outcome),
    /// At least one argument.
    Values(for<'a> fn(&mut Context<'_>, &mut D, &'a [Token]) -> Outcome),
    /// What its own function makes of the line and its block.
    Line(for<'a> fn(&mut Context<'_>, &mut D, &'a Directive) -> Outcome),
    /// Of the words behind its name on the same line, those that its own function takes away.
    Words(for<'a> fn(&mut Context<'_>, &mut D, &'a Token, &mut &'a [Token]) -> Outcome),
    /// An option of Caddy's that does not work yet, with what to do instead, if there is something.
    NotYet(Option<&'static str>),
}

/// One option.
pub(crate) struct Row<D> {
    name: &'static str,
    /// What follows the name, as a pattern or an example.
    usage: &'static str,
    /// Whether it may stand in a block several times although others may not: each adds to the others.
    repeats: bool,
    takes: Takes<D>,
}

/// The options of one block or one line.
pub(crate) struct OptionTable<D: 'static> {
    /// The directive or the option that has them.
    pub(crate) owner: &'static str,
    pub(crate) rows: &'static [Row<D>],
    /// Whether an option that stands there twice is an error.
    pub(crate) once: bool,
    /// Words of older Caddys and of other programs, with what to do about them.
    pub(crate) others: &'static [(&'static str, &'static str)],
    /// The only argument of an option, or the error that there is another number.
    pub(crate) one: for<'l> fn(&'l Directive, &str) -> Result<&'l Token, Box<Problem>>,
    /// Help in place of all names, of which there are too many for a line.
    pub(crate) too_many: Option<&'static str>,
}

/// An argument with the name of its option, by which errors call it.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) name: &'a Token,
    pub(crate) token: &'a Token,
}

/// The names of the options that a block has, in its order.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) names: Vec<Token>,
    /// One of them is wrong.
    pub(crate) is_broken: bool,
}

/// The options of a directive, or of a block within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// What has these options: `reverse_proxy`, or a block in one, `transport http`.
    pub owner: &'static str,
    /// In the order in which they are documented.
    pub options: Vec<OptionOutline>,
}

/// An option without what reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionOutline {
    /// Its name.
    pub name: &'static str,
    /// What follows the name, as a pattern or an example; may be empty.
    pub usage: &'static str,
    /// Whether it works: the others are Caddy's, and refused with that reason.
    pub works: bool,
}

/// An option that stands alone.
pub(crate) const fn flag<D>(name: &'static str, store: fn(&mut D)) -> Row<D> {
    Row { name, usage: "", repeats: false, takes: Takes::Nothing(store) }
}

/// An option with one argument.
pub(crate) const fn value<D>(
    name: &'static str,
    usage: &'static str,
    read: for<'a> fn(&mut Context<'_>, &mut D, Value<'a>) -> Outcome,
) -> Row<D> {
    Row { name, usage, repeats: false, takes: Takes::Value(read) }
}

/// An option with at least one argument.
pub(crate) const fn values<D>(
    name: &'static str,
    usage: &'static str,
    read: for<'a> fn(&mut Context<'_>, &mut D, &'a [Token]) -> Outcome,
) -> Row<D> {
    Row { name, usage, repeats: false, takes: Takes::Values(read) }
}

/// An option whose own function reads the line and its block.
pub(crate) const fn line<D>(
    name: &'static str,
    usage: &'static str,
    read: for<'a> fn(&mut Context<'_>, &mut D, &'a Directive) -> Outcome,
) -> Row<D> {
    Row { name, usage, repeats: false, takes: Takes::Line(read) }
}

/// An option among others on a line, whose own function takes the words behind it.
pub(crate) const fn words<D>(
    name: &'static str,
    usage: &'static str,
    read: for<'a> fn(&mut Context<'_>, &mut D, &'a Token, &mut &'a [Token]) -> Outcome,
) -> Row<D> {
    Row { name, usage, repeats: false, takes: Takes::Words(read) }
}

/// An option of Caddy's that does not work yet.
pub(crate) const fn not_yet<D>(name: &'static str) -> Row<D> {
    Row { name, usage: "", repeats: false, takes: Takes::NotYet(None) }
}

/// An option of Caddy's that does not work yet, with what to do instead.
pub(crate) const fn not_yet_but<D>(name: &'static str, help: &'static str) -> Row<D> {
    Row { name, usage: "", repeats: false, takes: Takes::NotYet(Some(help)) }
}

/// The same option where it may stand in a block several times.
pub(crate) const fn repeated<D>(mut row: Row<D>) -> Row<D> {
    row.repeats = true;
    row
}

impl<D> Row<D> {
    /// Whether it may stand in a block several times although others may not.
    pub(crate) fn may_repeat(&self) -> bool {
        self.repeats
    }

    pub(crate) fn works(&self) -> bool {
        !matches!(self.takes, Takes::NotYet(_))
    }

    /// Reads an option on a line of its own.
    fn read(
        &self,
        table: &OptionTable<D>,
        cx: &mut Context<'_>,
        draft: &mut D,
        option: &Directive,
    ) -> Outcome {
        let usage = || format!("{} {}", self.name, self.usage);
        match self.takes {
            Takes::Nothing(store) => no_arguments(option).map(|()| store(draft)),
            Takes::Value(read) => {
                let token = (table.one)(option, &usage())?;
                read(cx, draft, Value { name: &option.name, token })
            }
            Takes::Values(read) => read(cx, draft, some_arguments(option, &usage())?),
            Takes::Line(read) => read(cx, draft, option),
            Takes::Words(read) => read(cx, draft, &option.name, &mut option.args.as_slice()),
            Takes::NotYet(_) => Ok(()),
        }
    }
}

impl<D> OptionTable<D> {
    /// Options of which the last one counts where one stands there twice.
    pub(crate) const fn new(owner: &'static str, rows: &'static [Row<D>]) -> Self {
        Self { owner, rows, once: false, others: &[], one: one_argument, too_many: None }
    }

    /// The row of an option, whether or not it works.
    pub(crate) fn row(&self, name: &str) -> Option<&'static Row<D>> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Reads the options of a block; every problem is kept.
    pub(crate) fn read(&self, cx: &mut Context<'_>, draft: &mut D, block: Option<&[Directive]>) -> Seen {
        self.read_or(cx, draft, block, |_, _, option| Err(self.unknown(option)))
    }

    /// The same where `other` reads what has no row.
    pub(crate) fn read_or(
        &self,
        cx: &mut Context<'_>,
        draft: &mut D,
        block: Option<&[Directive]>,
        mut other: impl FnMut(&mut Context<'_>, &mut D, &Directive) -> Outcome,
    ) -> Seen {
        let mut seen = Seen::default();
        for option in block.unwrap_or_default() {
            let name = &option.name;
            let row = self.row(&name.text);
            let result = match row {
                Some(_) => self.read_option(cx, draft, option),
                None => other(cx, draft, option),
            };
            let is_single = self.once && row.is_some_and(|row| !row.repeats);
            let result = result.and_then(|()| match seen.token(&name.text).filter(|_| is_single) {
                Some(first) => Err(set_twice(name, first)),
                None => Ok(()),
            });
            seen.names.push(name.clone());
            seen.is_broken |= cx.keep(result).is_none();
        }
        seen
    }

    /// Reads one option of a block.
    pub(crate) fn read_option(&self, cx: &mut Context<'_>, draft: &mut D, option: &Directive) -> Outcome {
        match self.row(&option.name.text).filter(|row| row.works()) {
            Some(row) => row.read(self, cx, draft, option),
            None => Err(self.unknown(option)),
        }
    }

    /// Reads an option that stands among others on a line, and takes it away with what belongs to it.
    pub(crate) fn read_word<'a>(
        &self,
        cx: &mut Context<'_>,
        draft: &mut D,
        word: &'a Token,
        rest: &mut &'a [Token],
    ) -> Outcome {
        let Some(row) = self.row(&word.text) else { return Err(self.unknown_word(word)) };
        match row.takes {
            Takes::Nothing(store) => {
                store(draft);
                Ok(())
            }
            Takes::Words(read) => read(cx, draft, word, rest),
            Takes::Value(read) => {
                let Some((token, after)) = rest.split_first() else {
                    return Err(no_value(word).help(format!("for example `{} {}`", row.name, row.usage)));
                };
                *rest = after;
                read(cx, draft, Value { name: word, token })
            }
            Takes::Values(_) | Takes::Line(_) | Takes::NotYet(_) => Err(self.unknown_word(word)),
        }
    }

    /// An option without a row, or one that does not work yet.
    pub(crate) fn unknown(&self, option: &Directive) -> Box<Problem> {
        let word = option.name.text.as_str();
        let mut problem = unknown_option(self.owner, option, &self.names(true), &self.names(false));
        if let Some(help) = self.too_many.filter(|_| is_list(&problem)) {
            problem = problem.help(help);
        }
        let other = self.others.iter().find(|(theirs, _)| *theirs == word).map(|(_, help)| *help);
        let instead = self.row(word).and_then(|row| match row.takes {
            Takes::NotYet(help) => help,
            _ => None,
        });
        match other.or(instead) {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// A word on a line that is none of the options.
    pub(crate) fn unknown_word(&self, word: &Token) -> Box<Problem> {
        let problem = unknown_word(self.owner, word, &self.names(true));
        match self.others.iter().find(|(theirs, _)| *theirs == word.text) {
            Some((_, help)) => problem.help(*help),
            None => problem,
        }
    }

    /// The names of all options that work, or of those that do not work yet.
    pub(crate) fn names(&self, work: bool) -> Vec<&'static str> {
        self.rows.iter().filter(|row| row.works() == work).map(|row| row.name).collect()
    }

    /// The names of all options.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|row| row.name)
    }

    /// The same options without what reads them.
    pub(crate) fn outline(&self) -> Outline {
        let option = |row: &Row<D>| OptionOutline { name: row.name, usage: row.usage, works: row.works() };
        Outline { owner: self.owner, options: self.rows.iter().map(option).collect() }
    }
}

impl Seen {
    /// The first option of this name.
    pub(crate) fn token(&self, name: &str) -> Option<&Token> {
        self.token_where(|known| known == name)
    }

    /// The first option whose name is like this.
    pub(crate) fn token_where(&self, fits: impl Fn(&str) -> bool) -> Option<&Token> {
        self.names.iter().find(|token| fits(&token.text))
    }
}

impl Value<'_> {
    /// A number within bounds.
    pub(crate) fn number(self, from: u64, to: u64) -> Result<u64, Box<Problem>> {
        number(self.token, &self.title(), from, to)
    }

    /// A number within bounds that are less than 2³².
    pub(crate) fn count(self, from: u64, to: u64) -> Result<u32, Box<Problem>> {
        self.number(from, to).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// A duration within bounds.
    pub(crate) fn within(self, from: Duration, to: Duration) -> Result<Duration, Box<Problem>> {
        within(self.token, &self.title(), from, to)
    }

    /// What errors call it.
    pub(crate) fn title(self) -> String {
        format!("`{}`", self.name.text)
    }
}

/// A word of a line that needs another one behind it.
pub(crate) fn no_value(word: &Token) -> Box<Problem> {
    Problem::error("arguments", &word.place, format!("`{}` has no value behind it", word.text))
        .help("write its value behind it, or take the word away")
}

/// Whether the help lists all options, because none has a similar name.
fn is_list(problem: &Problem) -> bool {
    problem.help.as_ref().is_some_and(|help| help.starts_with("there are"))
}
