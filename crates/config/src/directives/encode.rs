//! `encode`: compression of answers.

use super::{no_arguments, one_argument, options, placed, unknown_option};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::order::Placed;
use crate::check::value::{encoding, number};
use crate::checked::{Encode, Encoding, Step};
use crate::problem::Problem;
use crate::syntax::Line;

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

pub(super) fn encode(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Line,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let mut encodings: Vec<Encoding> = Vec::new();
    let mut minimum_length = MINIMUM_LENGTH;
    options(cx, line, |_, option| {
        match option.name.text.as_str() {
            "minimum_length" => {
                minimum_length =
                    number(one_argument(option, "minimum_length 512")?, "`minimum_length`", 0, u64::MAX)?;
            }
            "gzip" | "br" | "zstd" => {
                if let Some(level) =
                    option.args.first().or(option.block.iter().flatten().map(|line| &line.name).next())
                {
                    let message = "levels of compression are settings of Caddy that onehop does not have yet";
                    return Err(Problem::error("not-yet", &level.place, message));
                }
                no_arguments(option)?;
                add(&mut encodings, encoding(&option.name)?);
            }
            _ => {
                return Err(unknown_option(
                    "encode",
                    option,
                    &["gzip", "br", "zstd", "minimum_length"],
                    &["match"],
                ));
            }
        }
        Ok(())
    });
    for token in args {
        let encoding = encoding(token);
        cx.keep(encoding).into_iter().for_each(|encoding| add(&mut encodings, encoding));
    }
    if encodings.is_empty() {
        encodings = vec![Encoding::Zstd, Encoding::Gzip];
    }
    let types = TYPES.map(str::to_owned).to_vec();
    Ok(vec![placed("encode", chosen, line, Step::Encode(Encode { encodings, minimum_length, types }))])
}

fn add(encodings: &mut Vec<Encoding>, encoding: Encoding) {
    if !encodings.contains(&encoding) {
        encodings.push(encoding);
    }
}
