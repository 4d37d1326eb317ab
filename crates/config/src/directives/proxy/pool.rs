//! `pool min N max M idle TIME`: connections that are open before a request comes. onehop's own.

use std::time::Duration;

use crate::check::value::{number, within};
use crate::directives::{no_block, unknown_word, wrong_arguments};
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_FLOOR_MAX, PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::problem::Problem;
use crate::syntax::Line;

const USAGE: &str = "pool min 4 max 64 idle 30m";
const WORDS: [&str; 3] = ["min", "max", "idle"];

/// What is written, in any order and part.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Written {
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) idle: Option<Duration>,
}

pub(super) fn pool(option: &Line) -> Result<Written, Box<Problem>> {
    no_block(option)?;
    let mut written = Written::default();
    if option.args.is_empty() {
        return Err(wrong_arguments(option, USAGE).help(format!("each part can be left out: `{USAGE}`")));
    }
    for pair in option.args.chunks(2) {
        let [word, value] = pair else { return Err(wrong_arguments(option, USAGE)) };
        let is_second = match word.text.as_str() {
            "min" => written.min.replace(small(number(value, "`min`", 0, PROXY_FLOOR_MAX)?)).is_some(),
            "max" => written.max.replace(small(number(value, "`max`", 1, PROXY_CONNECTIONS_MAX)?)).is_some(),
            "idle" => {
                written.idle.replace(within(value, "`idle`", PROXY_TIME_MIN, PROXY_TIME_MAX)?).is_some()
            }
            _ => return Err(unknown_word("pool", word, &WORDS)),
        };
        if is_second {
            let message = format!("`{}` is set twice", word.text);
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
    }
    Ok(written)
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
