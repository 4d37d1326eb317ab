//! The pictures of the page, each as SVG.
//!
//! Owns how a picture is laid out at a width. Every series has a dash and a sign of its own beside its colour, and its
//! name stands at its line or above the picture.

use std::time::Duration;

use super::svg::{Anchor, Canvas, LETTER, Scale, apart, fitted, width_of};
use crate::figures;
use crate::plot::{Against, Bar, Curve, Moment, Plot, Ratios, Series};

/// The height of the part between the axes.
const HEIGHT: f64 = 240.0;

/// The height of one row of a picture with rows.
const ROW: f64 = 30.0;

/// Between things that must not touch.
const GAP: f64 = 8.0;

/// The share of the width that names at the lines may take.
const NAMES_SHARE_MAX: f64 = 0.36;

/// The reach of an axis of ratios, end by begin, up to which 0.8 and 1.25 have room beside 1.
const NEIGHBOURS_OF_ONE_UP_TO: f64 = 8.0;

/// Below this width names stand above what they name.
const NARROW: f64 = 500.0;

/// What a picture is called and says in a sentence.
pub(super) fn title(plot: &Plot) -> (String, String) {
    match plot {
        Plot::Percentiles(curves) => (
            "Latency by percentile".to_owned(),
            format!(
                "How long all but the slowest took, for {}. The distance of 90 % from 99 % is that of 99 % from 99.9 %.",
                figures::listed(&curves.iter().map(|curve| curve.name.clone()).collect::<Vec<_>>())
            ),
        ),
        Plot::OverTime(series) => (
            format!("Over time, {}", series.name),
            match series.stalls.len() {
                0 => "Good answers per second above, latency of the same moments below.".to_owned(),
                stalls => format!(
                    "Good answers per second above, latency below. {} without an answer shaded.",
                    match stalls {
                        1 => "One time".to_owned(),
                        more => format!("{more} times"),
                    }
                ),
            },
        ),
        Plot::Ratios(ratios) => (
            figures::capital(&ratios.title),
            "Each ratio with its interval. Where an interval holds 1, no difference is shown.".to_owned(),
        ),
        Plot::Against(against) => (
            format!("Latency against {}", against.load),
            format!("The median and {} at each load.", figures::percentile(against.share)),
        ),
        Plot::Bars(_) => {
            ("Latency of each request".to_owned(), "From the median over p99 to the maximum.".to_owned())
        }
    }
}

/// The picture at this width. The id is unique in the page.
pub(super) fn draw(plot: &Plot, width: f64, class: &str, id: &str) -> String {
    let (title, description) = title(plot);
    let mut canvas = Canvas::new(width);
    let height = match plot {
        Plot::Percentiles(curves) => percentiles(&mut canvas, curves),
        Plot::OverTime(series) => over_time(&mut canvas, series),
        Plot::Ratios(ratios) => intervals(&mut canvas, ratios),
        Plot::Against(against) => curve_of_load(&mut canvas, against),
        Plot::Bars(bars) => requests(&mut canvas, bars),
    };
    canvas.finish(height, class, id, &title, &description)
}

/// The part between the axes.
#[derive(Clone, Copy)]
struct Field {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A series of a picture: its name, its points (`None` is a gap), and where its signs stand.
struct Drawn {
    name: String,
    points: Vec<Option<(f64, f64)>>,
    signs: Vec<(f64, f64, bool)>,
}

impl Field {
    /// Room for the labels of the upward axis at the left and for names at the right.
    fn new(canvas: &Canvas, top: f64, names: &[String]) -> Field {
        let left = width_of("99.9 ms") + GAP;
        let longest = names.iter().map(|name| width_of(name)).fold(0.0, f64::max);
        let names =
            if canvas.width < NARROW { GAP } else { longest.min(canvas.width * NAMES_SHARE_MAX) + 2.0 * GAP };
        Field { left, right: canvas.width - names.max(3.0 * GAP), top, bottom: top + HEIGHT }
    }

    /// The upward axis with its lines and labels.
    fn upward(&self, canvas: &mut Canvas, scale: &Scale, tell: impl Fn(f64) -> String) {
        for tick in scale.ticks(5) {
            let y = scale.place(tick);
            canvas.line("grid", (self.left, y), (self.right, y));
            canvas.text("tick", Anchor::End, (self.left - GAP, y + LETTER / 3.0), &tell(tick));
        }
    }

    /// The axis to the right. Labels that would touch the one before are left out, their ticks stay.
    fn rightward(&self, canvas: &mut Canvas, scale: &Scale, ticks: &[f64], tell: impl Fn(f64) -> String) {
        let mut free_from = 0.0;
        for tick in ticks {
            let x = scale.place(*tick);
            canvas.line("grid", (x, self.top), (x, self.bottom));
            let label = tell(*tick);
            let half = width_of(&label) / 2.0;
            let middle = x.clamp(half, (canvas.width - half).max(half));
            if middle - half >= free_from {
                canvas.text("tick", Anchor::Middle, (middle, self.bottom + LETTER + 4.0), &label);
                free_from = middle + half + GAP;
            }
        }
        canvas.line("axis", (self.left, self.bottom), (self.right, self.bottom));
    }

    /// What the axis to the right is.
    fn name_below(&self, canvas: &mut Canvas, name: &str) -> f64 {
        let y = self.bottom + 2.0 * LETTER + 12.0;
        canvas.text("name", Anchor::Middle, ((self.left + self.right) / 2.0, y), name);
        y + GAP
    }

    fn name_above(&self, canvas: &mut Canvas, name: &str, scale: &Scale) {
        let scaled = if scale.is_logarithmic() { format!("{name} (logarithmic)") } else { name.to_owned() };
        canvas.text("name", Anchor::Start, (0.0, self.top - 12.0), &scaled);
    }

    /// Lines with their names at their ends, or with signs above the field where there is no room.
    fn series(&self, canvas: &mut Canvas, drawn: &[Drawn], first: usize) {
        for (place, one) in drawn.iter().enumerate() {
            canvas.path(&format!("l c{}", first + place), one.points.iter().copied());
            for (x, y, is_hollow) in &one.signs {
                canvas.marker(first + place, *is_hollow, (*x, *y));
            }
        }
        if canvas.width < NARROW {
            return;
        }
        let ends: Vec<f64> = drawn
            .iter()
            .map(|one| one.points.iter().rev().flatten().next().map_or(self.bottom, |(_, y)| *y))
            .collect();
        for ((one, y), end) in
            drawn.iter().zip(apart(&ends, LETTER + 4.0, self.top + 4.0, self.bottom)).zip(&ends)
        {
            if (y - end).abs() > LETTER / 2.0 {
                canvas.line("lead", (self.right + 1.0, *end), (self.right + GAP + 2.0, y));
            }
            let room = canvas.width - self.right - 2.0 * GAP;
            canvas.text(
                "label",
                Anchor::Start,
                (self.right + GAP + 4.0, y + LETTER / 3.0),
                &fitted(&one.name, room + GAP),
            );
        }
    }
}

/// Names with their signs, one below the other, where the picture is too narrow for them at the lines. Returns where
/// they end.
fn legend(canvas: &mut Canvas, names: &[String], first: usize, top: f64) -> f64 {
    if canvas.width >= NARROW {
        return top;
    }
    let mut y = top + LETTER;
    for (place, name) in names.iter().enumerate() {
        let series = first + place;
        let middle = y - LETTER / 3.0;
        canvas.path(&format!("l c{series}"), [Some((0.0, middle)), Some((36.0, middle))].into_iter());
        canvas.marker(series, false, (18.0, middle));
        canvas.text("label", Anchor::Start, (44.0, y), &fitted(name, canvas.width - 44.0));
        y += LETTER + 6.0;
    }
    y
}

fn percentiles(canvas: &mut Canvas, curves: &[Curve]) -> f64 {
    let names: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
    let top = legend(canvas, &names, 0, 0.0) + 2.0 * LETTER + 4.0;
    let field = Field::new(canvas, top, &names);
    let far = |share: f64| -(1.0 - share).max(1e-9).log10();
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let reach = all().map(|(share, _)| far(*share)).fold(1.0, f64::max);
    let across = Scale::exact(0.0, reach, field.left, field.right);
    let up = Scale::fitting(all().map(|(_, latency)| *latency), field.bottom, field.top);
    field.name_above(canvas, "Latency", &up);
    field.upward(canvas, &up, time);
    let shares = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999];
    let ticks: Vec<f64> = shares.into_iter().map(far).filter(|tick| *tick <= reach).collect();
    field.rightward(canvas, &across, &ticks, |tick| {
        let percent = format!("{:.4}", 100.0 * (1.0 - 10f64.powf(-tick)));
        format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
    });
    let drawn: Vec<Drawn> = curves
        .iter()
        .map(|curve| {
            let place = |(share, latency): &(f64, f64)| (across.place(far(*share)), up.place(*latency));
            let signs = [0.5, 0.9, 0.99, 0.999].into_iter().filter_map(|share| {
                let point = curve.points.iter().find(|(other, _)| *other >= share)?;
                let (x, y) = place(point);
                Some((x, y, false))
            });
            let signs = signs.collect();
            Drawn {
                name: curve.name.clone(),
                points: curve.points.iter().map(|one| Some(place(one))).collect(),
                signs,
            }
        })
        .collect();
    field.series(canvas, &drawn, 0);
    field.name_below(canvas, "Share of requests that took at most as long")
}

fn over_time(canvas: &mut Canvas, series: &Series) -> f64 {
    let moments = &series.moments;
    let has_bad = moments.iter().any(|moment| moment.bad > 0.0);
    let mut names = vec!["good".to_owned()];
    names.extend(has_bad.then(|| "failed".to_owned()));
    let top = legend(canvas, &names, 0, 0.0) + 2.0 * LETTER + 4.0;
    let latency_names = ["p50", "p99", "max"].map(str::to_owned);
    let widest: Vec<String> = names.iter().chain(&latency_names).cloned().collect();
    let mut rates = Field::new(canvas, top, &widest);
    rates.bottom = rates.top + HEIGHT * 0.6;
    let across = Scale::exact(0.0, series.seconds, rates.left, rates.right);
    let highest = moments.iter().map(|moment| moment.rate.max(moment.bad)).fold(0.0, f64::max);
    let up = Scale::linear(highest, rates.bottom, rates.top);
    rates.name_above(canvas, "Answers per second", &up);
    shade(canvas, series, &rates, &across, true);
    rates.upward(canvas, &up, figures::amount);
    rates.rightward(canvas, &across, &across.ticks(6), seconds);
    let middle = series.seconds / moments.len().max(1) as f64 / 2.0;
    let line = |name: &str, up: &Scale, of: fn(&Moment) -> f64, has_gaps: bool| {
        let point = |moment: &Moment| {
            let value = of(moment);
            (!has_gaps || value > 0.0).then(|| (across.place(moment.at + middle), up.place(value)))
        };
        let points: Vec<Option<(f64, f64)>> = moments.iter().map(point).collect();
        let every = (points.len() / 6).max(1);
        let signs = points.iter().skip(every / 2).step_by(every).flatten().map(|(x, y)| (*x, *y, false));
        let signs = signs.collect();
        Drawn { name: name.to_owned(), points, signs }
    };
    let mut drawn = vec![line("good", &up, |moment| moment.rate, false)];
    drawn.extend(has_bad.then(|| line("failed", &up, |moment| moment.bad, false)));
    let first = drawn.len();
    rates.series(canvas, &drawn, 0);

    let top = legend(canvas, &latency_names, first, rates.bottom + 2.0 * LETTER) + 2.0 * LETTER + 14.0;
    let below = Field { top, bottom: top + HEIGHT * 0.7, ..rates };
    let values = moments.iter().flat_map(|moment| [moment.p50, moment.p99, moment.max]);
    let up = Scale::fitting(values, below.bottom, below.top);
    below.name_above(canvas, "Latency of the answers of each moment", &up);
    shade(canvas, series, &below, &across, false);
    below.upward(canvas, &up, time);
    below.rightward(canvas, &across, &across.ticks(6), seconds);
    let drawn = [
        line("p50", &up, |moment| moment.p50, true),
        line("p99", &up, |moment| moment.p99, true),
        line("max", &up, |moment| moment.max, true),
    ];
    below.series(canvas, &drawn, first);
    below.name_below(canvas, "Time since the begin of the measurement")
}

/// Times without an answer, hatched, the first ones with their length as far as the words have room.
fn shade(canvas: &mut Canvas, series: &Series, field: &Field, across: &Scale, with_words: bool) {
    let mut free_from = field.left;
    for stall in &series.stalls {
        let begin = across.place(stall.at.as_secs_f64());
        let end = across.place((stall.at + stall.length).as_secs_f64()).max(begin + 2.0);
        canvas.hatched("stall", (begin, field.top), end - begin, field.bottom - field.top);
        let words = format!("no answers for {}", figures::duration(stall.length));
        let half = width_of(&words) / 2.0;
        let middle =
            ((begin + end) / 2.0).clamp(field.left + half, (field.right - half).max(field.left + half));
        if with_words && middle - half >= free_from {
            let at = (middle - half, field.bottom - 1.6 * LETTER);
            canvas.rectangle("plate", at, 2.0 * half, 1.4 * LETTER);
            canvas.text("label", Anchor::Middle, (middle, field.bottom - 0.6 * LETTER), &words);
            free_from = middle + half + GAP;
        }
    }
}

fn seconds(tick: f64) -> String {
    figures::length(Duration::try_from_secs_f64(tick).unwrap_or_default())
}

/// Microseconds at an axis, whose values are round.
fn time(micros: f64) -> String {
    seconds(micros / 1e6)
}

fn intervals(canvas: &mut Canvas, ratios: &Ratios) -> f64 {
    let is_narrow = canvas.width < NARROW;
    let widest = |of: &dyn Fn(usize) -> String| {
        (0..ratios.rows.len()).map(|row| width_of(&of(row))).fold(0.0, f64::max)
    };
    let name = |row: usize| ratios.rows[row].0.clone();
    let verdict = |row: usize| figures::verdict(ratios.rows[row].2, &ratios.rows[row].1);
    let row_height = if is_narrow { 2.0 * ROW } else { ROW };
    let top = 2.0 * LETTER;
    let field = Field {
        left: if is_narrow { GAP } else { widest(&name) + GAP },
        right: if is_narrow { canvas.width - GAP } else { canvas.width - widest(&verdict) - 2.0 * GAP },
        top,
        bottom: top + row_height * ratios.rows.len() as f64 + GAP,
    };
    let ends = ratios.rows.iter().flat_map(|(_, interval, _)| [interval.low, interval.high]);
    let (low, high) = ends.fold((0.8f64, 1.25f64), |(low, high), end| (low.min(end), high.max(end)));
    let across = Scale::logarithmic((low * 0.95).max(1e-3), (high * 1.05).min(1e3), field.left, field.right);
    let ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    // On a long axis the neighbours of 1 would take its label's place.
    let is_long = high / low > NEIGHBOURS_OF_ONE_UP_TO;
    let ticks: Vec<f64> = ticks
        .into_iter()
        .filter(|tick| (low * 0.95..=high * 1.05).contains(tick) && !(is_long && [0.8, 1.25].contains(tick)))
        .collect();
    field.rightward(canvas, &across, &ticks, |tick| format!("{tick}"));
    let one = across.place(1.0);
    canvas.line("one", (one, field.top), (one, field.bottom));
    let words_of_one = "1: no difference";
    let half = width_of(words_of_one) / 2.0;
    let middle = one.clamp(half, canvas.width - half);
    canvas.text("label", Anchor::Middle, (middle, field.top - GAP), words_of_one);
    for (row, (name, interval, _)) in ratios.rows.iter().enumerate() {
        let begin = field.top + row_height * row as f64;
        let y = begin + row_height - ROW / 2.0 + 2.0;
        let [low, middle, high] = [interval.low, interval.middle, interval.high].map(|end| across.place(end));
        canvas.line("whisker", (low, y), (high, y));
        canvas.line("whisker", (low, y - 6.0), (low, y + 6.0));
        canvas.line("whisker", (high, y - 6.0), (high, y + 6.0));
        canvas.marker(0, false, (middle, y));
        let baseline = y + LETTER / 3.0;
        if is_narrow {
            let label = fitted(&format!("{name}: {}", verdict(row)), canvas.width);
            let at = begin + LETTER + GAP;
            canvas.rectangle("plate", (0.0, at - LETTER), width_of(&label), LETTER + 4.0);
            canvas.text("label", Anchor::Start, (0.0, at), &label);
        } else {
            canvas.text("label", Anchor::End, (field.left - GAP, baseline), name);
            canvas.text("label", Anchor::Start, (field.right + 2.0 * GAP, baseline), &verdict(row));
        }
    }
    field.name_below(canvas, "Ratio (logarithmic)")
}

fn curve_of_load(canvas: &mut Canvas, against: &Against) -> f64 {
    let high = figures::percentile(against.share);
    let names = vec!["p50".to_owned(), high.clone()];
    let top = legend(canvas, &names, 0, 0.0) + 2.0 * LETTER + 4.0;
    let field = Field::new(canvas, top, &names);
    let loads = against.points.iter().map(|point| point.load);
    let (least, most) =
        loads.clone().fold((f64::MAX, 0.0f64), |(low, high), load| (low.min(load), high.max(load)));
    let across = match most / least > 25.0 {
        true => Scale::logarithmic(least, most, field.left + GAP, field.right - GAP),
        false => Scale::exact(0.0, most, field.left, field.right - GAP),
    };
    let values = against.points.iter().flat_map(|point| [point.median, point.high]).chain(against.limit);
    let up = Scale::fitting(values, field.bottom, field.top);
    field.name_above(canvas, "Latency", &up);
    field.upward(canvas, &up, time);
    let ticks = if across.is_logarithmic() { loads.collect() } else { across.ticks(5) };
    field.rightward(canvas, &across, &ticks, figures::amount);
    if let Some(limit) = against.limit {
        let y = up.place(limit);
        canvas.line("limit", (field.left, y), (field.right, y));
        let label = format!("limit {}", time(limit));
        canvas.rectangle("plate", (field.left + GAP / 2.0, y - LETTER - 6.0), width_of(&label), LETTER + 2.0);
        canvas.text("label", Anchor::Start, (field.left + GAP, y - 6.0), &label);
    }
    let line = |name: &str, value: &dyn Fn(usize) -> f64| {
        let at = |place: usize| (across.place(against.points[place].load), up.place(value(place)));
        Drawn {
            name: name.to_owned(),
            points: (0..against.points.len()).map(|place| Some(at(place))).collect(),
            signs: (0..against.points.len())
                .map(|place| {
                    let (x, y) = at(place);
                    (x, y, !against.points[place].is_within)
                })
                .collect(),
        }
    };
    let drawn = [
        line("p50", &|place| against.points[place].median),
        line(&high, &|place| against.points[place].high),
    ];
    field.series(canvas, &drawn, 0);
    let scaled = if across.is_logarithmic() { " (logarithmic)" } else { "" };
    let end = field.name_below(canvas, &format!("{}{scaled}", figures::capital(&against.load)));
    let hollow = match (against.limit, against.points.iter().all(|point| point.is_within)) {
        (_, true) => return end,
        (Some(_), false) => "Hollow signs: beyond the limit",
        (None, false) => "Hollow signs: the load was at its own limit",
    };
    canvas.text("name", Anchor::Middle, ((field.left + field.right) / 2.0, end + LETTER), hollow);
    end + LETTER + GAP
}

fn requests(canvas: &mut Canvas, bars: &[Bar]) -> f64 {
    let is_narrow = canvas.width < NARROW;
    let names = ["p50", "p99", "max"];
    let row_height = if is_narrow { 2.0 * ROW } else { ROW };
    let longest = bars.iter().map(|bar| width_of(&bar.name)).fold(0.0, f64::max);
    let top = 2.5 * LETTER;
    let field = Field {
        left: if is_narrow { GAP } else { longest.min(canvas.width / 3.0) + GAP },
        right: canvas.width - 3.0 * GAP,
        top,
        bottom: top + row_height * bars.len() as f64 + GAP,
    };
    let values = bars.iter().flat_map(|bar| [bar.p50, bar.p99, bar.max]);
    let across = Scale::fitting(values, field.left, field.right);
    field.rightward(canvas, &across, &across.ticks(if is_narrow { 4 } else { 6 }), time);
    for (place, name) in names.iter().enumerate() {
        let x = GAP + 70.0 * place as f64;
        canvas.marker(place, false, (x, LETTER - 4.0));
        canvas.text("label", Anchor::Start, (x + GAP, LETTER), name);
    }
    for (row, bar) in bars.iter().enumerate() {
        let begin = field.top + row_height * row as f64;
        let y = begin + row_height - ROW / 2.0 + 2.0;
        let places = [bar.p50, bar.p99, bar.max].map(|value| across.place(value));
        canvas.rectangle("bar", (places[0], y - 3.0), places[2] - places[0], 6.0);
        for (series, x) in places.into_iter().enumerate().rev() {
            canvas.marker(series, false, (x, y));
        }
        let failed = match bar.failed {
            0 => String::new(),
            failed => format!(" ({} failed)", figures::count(failed)),
        };
        if is_narrow {
            let label = fitted(&format!("{}{failed}", bar.name), canvas.width);
            let at = begin + LETTER + GAP;
            canvas.rectangle("plate", (0.0, at - LETTER), width_of(&label), LETTER + 4.0);
            canvas.text("label", Anchor::Start, (0.0, at), &label);
        } else {
            let label = fitted(&bar.name, field.left - GAP);
            canvas.text("label", Anchor::End, (field.left - GAP, y + LETTER / 3.0), &label);
        }
    }
    let scaled = if across.is_logarithmic() { "Latency (logarithmic)" } else { "Latency" };
    field.name_below(canvas, scaled)
}
