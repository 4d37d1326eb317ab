//! `encode`: compression of answers.

use super::placed;
use crate::arguments::no_arguments;
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::value::encoding;
use crate::checked::{Encode, Encoding, Step};
use crate::option_table::{OptionTable, line, not_yet, value};
use crate::problem::Problem;
use crate::syntax::Directive;

/// Bytes below which an answer is left as it is where the file does not say: Caddy's default.
const MINIMUM_LENGTH: u64 = 512;

/// Media types that shrink, as Caddy has them.
const TYPES: [&str; 33] = [
    "application/atom+xml*",
    "application/eot*",
    "application/font*",
    "application/geo+json*",
    "application/graphql+json*",
    "application/graphql-response+json*",
    "application/javascript*",
    "application/json*",
    "application/ld+json*",
    "application/manifest+json*",
    "application/opentype*",
    "application/otf*",
    "application/rss+xml*",
    "application/truetype*",
    "application/ttf*",
    "application/vnd.api+json*",
    "application/vnd.ms-fontobject*",
    "application/wasm*",
    "application/x-httpd-cgi*",
    "application/x-javascript*",
    "application/x-opentype*",
    "application/x-otf*",
    "application/x-perl*",
    "application/x-protobuf*",
    "application/x-ttf*",
    "application/xhtml+xml*",
    "application/xml*",
    "font/ttf*",
    "font/otf*",
    "image/svg+xml*",
    "image/vnd.microsoft.icon*",
    "image/x-icon*",
    "text/*",
];

pub(super) const OPTIONS: OptionTable<Encode> = OptionTable::new(
    "encode",
    &[
        line("gzip", "", |_, encode, option| one_encoding(encode, option)),
        line("br", "", |_, encode, option| one_encoding(encode, option)),
        line("zstd", "", |_, encode, option| one_encoding(encode, option)),
        value("minimum_length", "512", |_, encode, value| {
            value.number(0, u64::MAX).map(|length| encode.minimum_length = length)
        }),
        not_yet("match"),
    ],
);

pub(super) fn encode(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let types = TYPES.map(str::to_owned).to_vec();
    let mut settings = Encode { encodings: Vec::new(), minimum_length: MINIMUM_LENGTH, types };
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    for token in args {
        let encoding = encoding(token);
        cx.keep(encoding).into_iter().for_each(|encoding| add(&mut settings.encodings, encoding));
    }
    if settings.encodings.is_empty() {
        settings.encodings = vec![Encoding::Zstd, Encoding::Gzip];
    }
    Ok(vec![placed("encode", chosen, line, Step::Encode(settings))])
}

fn one_encoding(encode: &mut Encode, option: &Directive) -> Result<(), Box<Problem>> {
    let in_block = option.block.iter().flatten().map(|line| &line.name);
    if let Some(level) = option.args.iter().chain(in_block).next() {
        let message = "levels of compression are settings of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &level.place, message));
    }
    no_arguments(option)?;
    add(&mut encode.encodings, encoding(&option.name)?);
    Ok(())
}

fn add(encodings: &mut Vec<Encoding>, encoding: Encoding) {
    if !encodings.contains(&encoding) {
        encodings.push(encoding);
    }
}
