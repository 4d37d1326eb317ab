//! `tracing`: the request is a span of its trace. Where spans go is said by OpenTelemetry's environment variables, as in Caddy
//! (`check/otlp.rs`).

use std::sync::Arc;

use super::placed;
use crate::arguments::{one_argument, wrong_arguments};
use crate::check::matcher::{Scope, split};
use crate::check::otlp::{Signal, Wrong, broken, otlp_export, variable};
use crate::check::route_order::Placed;
use crate::check::template::{template, template_of_upstream};
use crate::check::{Context, Reading};
use crate::checked::{EVERY_TRACE, Sampler, Step, Template, Tracing};
use crate::limits::SPAN_ATTRIBUTES_MAX;
use crate::option_table::{OptionTable, line};
use crate::problem::Problem;
use crate::syntax::Directive;

const USAGE: &str = "tracing [<matcher>]`, or with a block `tracing [<matcher>] { span NAME }";

/// What its block says.
#[derive(Default)]
pub(super) struct Draft {
    span: Option<Template>,
    attributes: Vec<(String, Template)>,
}

pub(super) const OPTIONS: OptionTable<Draft> = OptionTable::new(
    "tracing",
    &[
        line("span", "span {http.request.method}", |cx, draft, option| {
            draft.span = Some(template(cx.source, one_argument(option, "span NAME")?)?);
            Ok(())
        }),
        line("span_attributes", "{ <name> <value> … }", |cx, draft, option| {
            attributes(cx, option, &mut draft.attributes)
        }),
    ],
);

pub(super) fn tracing(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    if !args.is_empty() {
        return Err(wrong_arguments(line, USAGE));
    }
    let mut draft = Draft::default();
    OPTIONS.read(cx, &mut draft, line.block.as_deref());
    let place = &line.name.place;
    let export = Arc::new(otlp_export(cx, Signal::Traces, "tracing", place)?);
    let sampler = sampler(cx.source).map_err(|wrong| broken(wrong, "tracing", place))?;
    let Draft { span, attributes } = draft;
    let step = Step::Tracing(Tracing { span, attributes, sampler, export });
    Ok(vec![placed("tracing", chosen, line, step)])
}

/// A name and a value a line, as in Caddy.
fn attributes(
    cx: &mut Context<'_>,
    option: &Directive,
    attributes: &mut Vec<(String, Template)>,
) -> Result<(), Box<Problem>> {
    if !option.args.is_empty() {
        return Err(wrong_arguments(option, "span_attributes { NAME VALUE }"));
    }
    for attribute in option.block.as_deref().unwrap_or_default() {
        let value = one_argument(attribute, "NAME VALUE")?;
        if attributes.len() == SPAN_ATTRIBUTES_MAX {
            let message = format!("a span has at most {SPAN_ATTRIBUTES_MAX} attributes of its own");
            return Err(Problem::error("too-large", &attribute.name.place, message));
        }
        let value = template_of_upstream(cx.source, value)?;
        attributes.push((attribute.name.text.clone(), value));
    }
    Ok(())
}

fn sampler(reading: Reading<'_>) -> Result<Sampler, Wrong> {
    let Some(name) = variable(reading, "OTEL_TRACES_SAMPLER") else { return Ok(Sampler::default()) };
    let (follows_parent, kind) = match name.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, name.as_str()),
    };
    let of_2_to_56 = match kind {
        "always_on" => EVERY_TRACE,
        "always_off" => 0,
        "traceidratio" => share(reading)?,
        _ => {
            let message = format!(
                "`{name}` is not known; it may be always_on, always_off, traceidratio, or one of them behind parentbased_"
            );
            return Err(("OTEL_TRACES_SAMPLER", message));
        }
    };
    Ok(Sampler { follows_parent, of_2_to_56 })
}

/// Of 2^56 traces so many.
fn share(reading: Reading<'_>) -> Result<u64, Wrong> {
    let Some(text) = variable(reading, "OTEL_TRACES_SAMPLER_ARG") else { return Ok(EVERY_TRACE) };
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    let message = || format!("`{text}` is no share of traces from 0 to 1");
    ratio
        .map(|ratio: f64| (ratio * EVERY_TRACE as f64) as u64)
        .ok_or_else(|| ("OTEL_TRACES_SAMPLER_ARG", message()))
}
