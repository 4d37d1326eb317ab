//! The whole configuration: global block, then one site after the other.

use super::address::Address;
use super::listen::Listeners;
use super::matcher::{Scope, is_definition};
use super::{Context, global};
use crate::checked::{Checked, Global, Site};
use crate::directives::{self, SiteSettings};
use crate::problem::Problem;
use crate::syntax::{Block, Parsed};

/// Checks everything; what is wrong goes to the context's problems.
pub(crate) fn check(cx: &mut Context<'_>, parsed: &Parsed) -> Checked {
    let mut global = global::defaults();
    let mut listeners = Listeners::default();
    for (number, block) in parsed.blocks.iter().enumerate() {
        if !block.keys.is_empty() {
            site(cx, &global, block, &mut listeners);
        } else if number == 0 {
            global = global::global(cx, &block.lines);
        } else {
            let message = "the global block must be the first of the file";
            cx.problems.push(
                Problem::error("global-block", &block.place, message)
                    .help("move it to the top, or put an address before the brace"),
            );
        }
    }
    Checked { global, listeners: listeners.listeners, sites: listeners.sites }
}

fn site(cx: &mut Context<'_>, global: &Global, block: &Block, listeners: &mut Listeners) {
    let mut addresses = Vec::new();
    for key in &block.keys {
        if directives::is_known(&key.text) {
            let message = format!("the directive `{}` stands outside of a site", key.text);
            cx.problems.push(
                Problem::error("directive-place", &key.place, message)
                    .label("an address is expected here")
                    .help("begin the file with an address, for example `:8080`"),
            );
            // The rest of this line and the block are no site; errors in them would mislead.
            return;
        }
        let parsed = Address::parse(cx, key);
        addresses.extend(cx.keep(parsed));
    }
    let scope = Scope::of_block(cx, &block.lines, None);
    let mut settings = SiteSettings::default();
    let lines = block.lines.iter().filter(|line| !is_definition(line));
    let routes = directives::site(cx, &scope, lines, block.braces, &mut settings);
    let site = Site { label: String::new(), hosts: Vec::new(), routes, logs: settings.logs };
    listeners.add(cx, global, &addresses, &settings.binds, &site);
}
