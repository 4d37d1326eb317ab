//! Pictures drawn with letters, for terminals and for Markdown.
//!
//! Owns their size: never wider than what was asked for. The first line of each is its caption. A picture that its table
//! says as well without is left out.

use super::figures;
use super::plot::{Against, Bar, Curve, Moment, Plot, Ratios, Series, Under};

/// Eighths of a block, from nothing to all.
const BLOCKS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// The widest that a picture becomes: wider ones are harder to read, not easier.
const WIDTH_MAX: usize = 110;

/// Loads further apart than this are shown on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 25.0;

/// Lines of a picture with two axes.
const HEIGHT: usize = 10;

/// The width of what stands before a line or bar.
const LABEL: usize = 26;

/// The lines of a picture; none where it would say nothing.
pub(super) fn draw(plot: &Plot, width: usize) -> Vec<String> {
    let width = width.min(WIDTH_MAX);
    match plot {
        Plot::Percentiles(curves) => histogram(curves, width),
        Plot::OverTime(series) => over_time(series, width),
        Plot::Ratios(ratios) => intervals(ratios, width),
        Plot::Against(against) => field(against, width),
        Plot::Bars(bars) => beside(bars, width),
    }
}

/// A line of small bars, one for each group of values.
pub(super) fn sparkline(values: &[f64], width: usize, bottom: f64, top: f64) -> String {
    let width = width.clamp(1, values.len().max(1));
    let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let span = (top - bottom).max(f64::MIN_POSITIVE);
    let bar = |value: f64| {
        let share = ((value - bottom) / span).clamp(0.0, 1.0);
        // What is not zero is seen.
        let eighths = if value > bottom { (share * 8.0).round().max(1.0) } else { 0.0 };
        BLOCKS[eighths as usize % BLOCKS.len()]
    };
    let part = |column: usize| column * values.len() / width;
    (0..width)
        .map(|column| bar(highest(values.get(part(column)..part(column + 1)).unwrap_or_default())))
        .collect()
}

/// How many requests took how long: bins of equal width on a logarithmic axis.
fn histogram(curves: &[Curve], width: usize) -> Vec<String> {
    // Histograms below each other cannot be compared; several curves are in the table of percentiles.
    let [curve] = curves else { return Vec::new() };
    let most = curve.bins.iter().map(|bin| bin.share).fold(f64::MIN_POSITIVE, f64::max);
    let room = width.saturating_sub(LABEL + 10);
    let mut lines = vec![format!("How long requests took ({})", curve.name)];
    for bin in &curve.bins {
        let label = format!("{} to {}", figures::micros(bin.low), figures::micros(bin.high));
        let eighths = (bin.share / most * room as f64 * 8.0).round() as usize;
        let eighths = if bin.share > 0.0 { eighths.max(1) } else { 0 };
        let mut bar = "\u{2588}".repeat(eighths / 8);
        // Parts of a block that grow to the right stand the other way round in Unicode.
        if let Some(part) = (eighths % 8 > 0).then(|| char::from_u32(0x2590 - (eighths % 8) as u32)).flatten()
        {
            bar.push(part);
        }
        lines.push(format!("{label:>LABEL$} {bar} {}", figures::percent(bin.share)));
    }
    if curve.bins.is_empty() { Vec::new() } else { lines }
}

fn over_time(series: &Series, width: usize) -> Vec<String> {
    let room = width.saturating_sub(32).clamp(10, series.moments.len().max(10));
    let most = |of: fn(&Moment) -> f64| series.moments.iter().map(of).fold(0.0, f64::max);
    let values = |of: fn(&Moment) -> f64| series.moments.iter().map(of).collect::<Vec<f64>>();
    let mut lines = vec![format!(
        "Over time ({}, {}; each line from zero to its own highest value)",
        series.name,
        figures::micros(series.seconds * 1e6)
    )];
    let mut add = |name: &str, of: fn(&Moment) -> f64, most: f64, tell: String| {
        let line = sparkline(&values(of), room, 0.0, most);
        lines.push(format!("{name:>12} {line:<room$} up to {tell}"));
    };
    let rate = most(|moment| moment.rate);
    add("good answers", |moment| moment.rate, rate, figures::rate(rate));
    let bad = most(|moment| moment.bad);
    if bad > 0.0 {
        add("failures", |moment| moment.bad, bad, figures::rate(bad));
    }
    let high = most(|moment| moment.p99);
    add("p99", |moment| moment.p99, high, figures::micros(high));
    let max = most(|moment| moment.max);
    add("max", |moment| moment.max, max, figures::micros(max));
    if !series.stalls.is_empty() {
        let columns = room;
        let mut marks = vec![' '; columns];
        for stall in &series.stalls {
            let place = |at: f64| (at / series.seconds.max(f64::MIN_POSITIVE) * columns as f64) as usize;
            let begin = place(stall.at.as_secs_f64()).min(columns.saturating_sub(1));
            let end = place((stall.at + stall.length).as_secs_f64()).clamp(begin + 1, columns);
            marks[begin..end].fill('x');
        }
        let marks: String = marks.into_iter().collect();
        lines.push(format!("{:>12} {}", "no answers", marks.trim_end()));
    }
    lines
}

/// Each ratio as `|---o---|` on one logarithmic axis, with the line at 1.
fn intervals(ratios: &Ratios, width: usize) -> Vec<String> {
    let label = 30;
    let room = width.saturating_sub(label + 1).max(20);
    let ends = ratios.rows.iter().flat_map(|(_, interval, _)| [interval.low, interval.high]);
    let (low, high) = ends.fold((0.8f64, 1.25f64), |(low, high), end| (low.min(end), high.max(end)));
    let (low, high) = ((low * 0.97).max(1e-3), (high * 1.03).min(1e3));
    let place = |ratio: f64| {
        let share = (ratio.clamp(low, high) / low).ln() / (high / low).ln();
        ((share * (room - 1) as f64).round() as usize).min(room - 1)
    };
    let mut lines =
        vec![format!("{}: ratio with its interval; : is 1, no difference", figures::capital(&ratios.title))];
    for (name, interval, _) in &ratios.rows {
        let mut row = vec![' '; room];
        row[place(1.0)] = ':';
        let (from, to) = (place(interval.low), place(interval.high));
        row[from..=to].fill('\u{2500}');
        row[from] = '\u{251c}';
        row[to] = '\u{2524}';
        row[place(interval.middle)] = 'o';
        let row: String = row.into_iter().collect();
        lines.push(format!("{name:>label$} {}", row.trim_end()));
    }
    let mut axis = vec![' '; room + 8];
    for (at, text) in [(place(low), ratio_label(low)), (place(1.0), "1".to_owned())] {
        text.chars().zip(at..).for_each(|(letter, at)| axis[at] = letter);
    }
    let end = ratio_label(high);
    end.chars().zip(room - end.len()..).for_each(|(letter, at)| axis[at] = letter);
    let axis: String = axis.into_iter().collect();
    lines.push(format!("{:>label$} {}", "", axis.trim_end()));
    lines
}

fn ratio_label(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0}") } else { format!("{ratio:.2}") }
}

/// Latency upwards (logarithmic), load to the right.
fn field(against: &Against, width: usize) -> Vec<String> {
    let label = 10;
    let room = width.saturating_sub(label + 2).max(20);
    let all = against.points.iter().flat_map(|point| [point.median, point.high]).chain(against.limit);
    let (low, high) = all
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let most = against.points.iter().map(|point| point.load).fold(0.0, f64::max);
    if high <= 0.0 || most <= 0.0 {
        return Vec::new();
    }
    let high = high.max(low * 2.0);
    let line_of = |value: f64| {
        let share = ((value.max(low)) / low).ln() / (high / low).ln();
        HEIGHT - 1 - ((share * (HEIGHT - 1) as f64).round() as usize).min(HEIGHT - 1)
    };
    let least = against.points.iter().map(|point| point.load).fold(most, f64::min);
    let is_logarithmic = least > 0.0 && most / least > LOGARITHMIC_FROM;
    let column_of = |load: f64| {
        let share = if is_logarithmic { (load / least).ln() / (most / least).ln() } else { load / most };
        ((share * (room - 1) as f64).round() as usize).min(room - 1)
    };
    let mut grid = vec![vec![' '; room]; HEIGHT];
    if let Some(limit) = against.limit {
        grid[line_of(limit)].fill('\u{2504}');
    }
    let mut put =
        |point: &Under, value: f64, letter: char| grid[line_of(value)][column_of(point.load)] = letter;
    for point in &against.points {
        put(point, point.median, 'o');
    }
    for point in &against.points {
        put(point, point.high, if point.is_within { '#' } else { 'x' });
    }
    let name = figures::percentile(against.share);
    let limit = against
        .limit
        .map_or_else(String::new, |limit| format!(", \u{2504} limit {}", figures::micros(limit)));
    let beyond = if against.limit.is_some() { "beyond the limit" } else { "with the load at its limit" };
    let mut lines =
        vec![format!("Latency against {}: o p50, # {name}, x {name} {beyond}{limit}", against.load)];
    for (place, row) in grid.into_iter().enumerate() {
        let value = low * (high / low).powf((HEIGHT - 1 - place) as f64 / (HEIGHT - 1) as f64);
        let tick = if place % 3 == 0 { figures::micros(value) } else { String::new() };
        let row: String = row.into_iter().collect();
        lines.push(format!("{tick:>label$} \u{2502}{}", row.trim_end()));
    }
    lines.push(format!("{:>label$} \u{2514}{}", "", "\u{2500}".repeat(room)));
    let end = figures::amount(most);
    let begin = if is_logarithmic { figures::amount(least) } else { "0".to_owned() };
    let end_room = room.saturating_sub(begin.chars().count());
    lines.push(format!("{:>label$}  {begin}{end:>end_room$}", ""));
    lines
}

/// Requests beside each other on one logarithmic axis.
fn beside(bars: &[Bar], width: usize) -> Vec<String> {
    let label = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or_default().clamp(4, LABEL);
    let room = width.saturating_sub(label + 1).max(20);
    let low = bars.iter().map(|bar| bar.p50).filter(|value| *value > 0.0).fold(f64::MAX, f64::min) * 0.8;
    let high = bars.iter().map(|bar| bar.max).fold(0.0, f64::max);
    if high <= 0.0 || low >= high {
        return Vec::new();
    }
    let place = |value: f64| {
        let share = (value.max(low) / low).ln() / (high / low).ln();
        ((share * (room - 1) as f64).round() as usize).min(room - 1)
    };
    let mut lines = vec![format!(
        "From {} to {} (logarithmic): o p50, # p99, | max",
        figures::micros(low),
        figures::micros(high)
    )];
    for bar in bars {
        let mut row = vec![' '; room];
        row[place(bar.p50)..=place(bar.max)].fill('\u{2500}');
        row[place(bar.max)] = '|';
        row[place(bar.p99)] = '#';
        row[place(bar.p50)] = 'o';
        let name: String = bar.name.chars().take(label).collect();
        let row: String = row.into_iter().collect();
        lines.push(format!("{name:>label$} {}", row.trim_end()));
    }
    lines
}
