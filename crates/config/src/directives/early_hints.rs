//! `early_hints`: what a browser can load while the response is still being made. A directive of onehop's own.

use super::placed;
use crate::arguments::{some_arguments, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::check::value::field_value;
use crate::checked::{EarlyHints, Step, Template};
use crate::limits::EARLY_HINTS_LINKS_MAX;
use crate::option_table::{OptionTable, flag, line, repeated};
use crate::problem::Problem;
use crate::syntax::Directive;

const USAGE: &str = "early_hints [<matcher>] learn`, or with a block `early_hints [<matcher>] { … }";

pub(super) const OPTIONS: OptionTable<EarlyHints> = OptionTable::new(
    "early_hints",
    &[
        repeated(line("link", "</app.css>; rel=preload; as=style", |cx, hints, option| {
            let link = link(cx, option)?;
            if hints.links.len() == EARLY_HINTS_LINKS_MAX {
                let message = format!("`early_hints` has more than {EARLY_HINTS_LINKS_MAX} `link`s");
                return Err(Problem::error("too-large", &option.name.place, message)
                    .help("name what the browser needs first; the page names the rest"));
            }
            hints.links.push(link);
            Ok(())
        })),
        flag("learn", |hints| hints.learn = true),
    ],
);

pub(super) fn early_hints(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let mut hints = EarlyHints { links: Vec::new(), learn: false };
    match args {
        [] => {}
        [word] if word.text == "learn" => hints.learn = true,
        _ => return Err(wrong_arguments(line, USAGE)),
    }
    let seen = OPTIONS.read(cx, &mut hints, line.block.as_deref());
    if hints.links.is_empty() && !hints.learn && !seen.is_broken {
        return Err(Problem::error("arguments", &line.name.place, "`early_hints` has nothing to send")
            .help("write `learn`, or a block with `link </app.css>; rel=preload; as=style`"));
    }
    Ok(vec![placed("early_hints", chosen, line, Step::EarlyHints(hints))])
}

/// The value of a `Link` field (RFC 8288 section 3). Its words are joined as they would be on one line of a response.
fn link(cx: &Context<'_>, option: &Directive) -> Result<String, Box<Problem>> {
    let words = some_arguments(option, "link <URL>; rel=preload; as=…")?;
    let mut texts = Vec::new();
    for word in words {
        let text = fixed(cx.source, word, "a `link`")?;
        field_value(word, Template::text(text.as_str()))?;
        texts.push(text);
    }
    let link = texts.join(" ");
    let parameters = link.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let has_relation = parameters.is_some_and(|(url, rest)| {
        let names =
            |word: &str| word.trim_start().get(..4).is_some_and(|name| name.eq_ignore_ascii_case("rel="));
        !url.is_empty() && rest.split(';').skip(1).any(names)
    });
    if has_relation {
        return Ok(link);
    }
    Err(Problem::error("link", &option.name.place, format!("`{link}` is no value of a `Link` field"))
        .help("it is written `link </app.css>; rel=preload; as=style`"))
}
