//! `pool min N max M idle TIME`: connections that are open before a request comes. onehop's own.

use super::draft::WrittenPool;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_CONNECTIONS_MIN_MAX, PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::option_table::{OptionTable, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "pool min 4 max 64 idle 30m";

pub(super) const OPTIONS: OptionTable<WrittenPool> = OptionTable::new(
    "pool",
    &[
        value("min", "4", |_, pool, value| {
            let min = value.count(0, PROXY_CONNECTIONS_MIN_MAX)?;
            once(pool.min.replace(min), value.name)
        }),
        value("max", "64", |_, pool, value| {
            let max = value.count(1, PROXY_CONNECTIONS_MAX)?;
            once(pool.max.replace(max), value.name)
        }),
        value("idle", "30m", |_, pool, value| {
            let idle = value.within(PROXY_TIME_MIN, PROXY_TIME_MAX)?;
            once(pool.idle.replace(idle), value.name)
        }),
    ],
);

pub(super) fn pool(cx: &mut Context<'_>, option: &Directive) -> Result<WrittenPool, Box<Problem>> {
    no_block(option)?;
    let mut pool = WrittenPool::default();
    if option.args.is_empty() {
        return Err(wrong_arguments(option, USAGE).help(format!("each part can be left out: `{USAGE}`")));
    }
    for pair in option.args.chunks(2) {
        let [word, value] = pair else { return Err(wrong_arguments(option, USAGE)) };
        OPTIONS.read_word(cx, &mut pool, word, &mut std::slice::from_ref(value))?;
    }
    Ok(pool)
}

fn once<T>(earlier: Option<T>, word: &Token) -> Result<(), Box<Problem>> {
    let message = || format!("`{}` is set twice", word.text);
    earlier.map_or(Ok(()), |_| Err(Problem::error("duplicate-option", &word.place, message())))
}
