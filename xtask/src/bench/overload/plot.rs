//! Curves as SVG, written by hand: axes, a legend, lines that are told apart by colour, dash and mark.
//!
//! PURE: a chart in, text out. Readable on light and on dark: its colours follow `prefers-color-scheme`, its paper is its
//! own. Never draws a line over a place where there is no figure.

use std::fmt::Write as _;

/// A picture.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) across: Axis,
    pub(super) up: Axis,
    pub(super) series: Vec<Series>,
    /// Lines that are no curves: a capacity, a bound, a moment.
    pub(super) rules: Vec<Rule>,
}

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    Logarithmic,
}

/// An axis with its ticks.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

/// A curve. A point without a value interrupts it.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: String,
    /// Its place among [`STYLES`], the same in all pictures.
    pub(super) style: usize,
    /// Drawn thicker, and above the others.
    pub(super) is_ours: bool,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A straight line over the whole picture.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) at: Position,
    pub(super) label: String,
}

/// Where a rule lies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Position {
    /// At this value of the upward axis.
    Up(f64),
    /// At this value of the axis across.
    Across(f64),
}

/// Colour on light, colour on dark, dashes. Each colour has a contrast of 4.5 and more to its paper.
const STYLES: [(&str, &str, &str); 8] = [
    ("#0060df", "#6cb2ff", ""),
    ("#00784e", "#4fd1a0", "7 3"),
    ("#6b7280", "#b6bec9", "2 3"),
    ("#a0329b", "#e28cf0", "10 3 2 3"),
    ("#b4540a", "#ff9e57", ""),
    ("#c2185b", "#ff7aa8", "7 3"),
    ("#7a6000", "#e3c34a", "2 3"),
    ("#37474f", "#cfd8dc", "10 3 2 3"),
];

/// More points than this have no marks: they would hide the line.
const MARKED_MAX: usize = 20;

/// The picture and the part of it that has the curves, in pixels at its natural size.
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 88.0;
const RIGHT: f64 = 614.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 384.0;

/// Between two lines of the legend.
const LEGEND_STEP: f64 = 24.0;

/// The picture as a file's text.
pub(super) fn svg(chart: &Chart) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">"#
    );
    let (title, subtitle) = (escaped(&chart.title), escaped(&chart.subtitle));
    let _ = writeln!(text, "<title>{title}</title>\n<desc>{subtitle}</desc>\n{}", style_sheet());
    let _ = writeln!(text, r#"<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>"#);
    let _ = writeln!(
        text,
        r#"<text class="ink" x="{LEFT}" y="26" font-size="17" font-weight="600">{title}</text>"#
    );
    let _ = writeln!(text, r#"<text class="faint" x="{LEFT}" y="46">{subtitle}</text>"#);
    axes(&mut text, chart);
    rules(&mut text, chart);
    // Ours last, so that no other line lies over it.
    for is_ours in [false, true] {
        for series in chart.series.iter().filter(|series| series.is_ours == is_ours) {
            curve(&mut text, chart, series);
        }
    }
    legend(&mut text, chart);
    text.push_str("</svg>\n");
    text
}

/// Round numbers from 0 to `high` or a little more; the last one is where the axis should end.
fn even_ticks(high: f64) -> Vec<f64> {
    let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
    let rough = high / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let count = (high / step).ceil() as u32;
    (0..=count).map(|index| f64::from(index) * step).collect()
}

/// Powers of ten from not above `low` to not below `high`.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let is_usable = low.is_finite() && high.is_finite() && low > 0.0 && high >= low;
    let (low, high) = if is_usable { (low, high) } else { (1.0, 10.0) };
    let first = low.log10().floor() as i32;
    let last = (high.log10().ceil() as i32).max(first + 1);
    (first..=last).map(|power| 10f64.powi(power)).collect()
}

impl Axis {
    /// From 0 to a round number at or above `high`.
    pub(super) fn even(label: &str, high: f64) -> Axis {
        let ticks = even_ticks(high);
        let end = ticks.last().copied().unwrap_or(1.0);
        let named = ticks.into_iter().map(|tick| (tick, plain(tick))).collect();
        Axis { label: label.to_owned(), scale: Scale::Linear, low: 0.0, high: end, ticks: named }
    }

    /// Milliseconds, by powers of ten.
    pub(super) fn milliseconds(label: &str, low: f64, high: f64) -> Axis {
        let ticks = decades(low, high);
        let (first, last) = (ticks.first().copied().unwrap_or(1.0), ticks.last().copied().unwrap_or(10.0));
        let named = ticks.into_iter().map(|tick| (tick, in_milliseconds(tick))).collect();
        Axis { label: label.to_owned(), scale: Scale::Logarithmic, low: first, high: last, ticks: named }
    }

    /// 0 at its low end, 1 at its high end; what lies outside is put on the end.
    fn share(&self, value: f64) -> f64 {
        let place = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
        };
        let span = place(self.high) - place(self.low);
        if span > 0.0 { ((place(value) - place(self.low)) / span).clamp(0.0, 1.0) } else { 0.0 }
    }
}

fn x_of(chart: &Chart, value: f64) -> f64 {
    LEFT + chart.across.share(value) * (RIGHT - LEFT)
}

fn y_of(chart: &Chart, value: f64) -> f64 {
    BOTTOM - chart.up.share(value) * (BOTTOM - TOP)
}

fn style_sheet() -> String {
    let mut light = ".paper{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d9dee3}.axis{stroke:#59636e}"
        .to_owned();
    let mut dark = ".paper{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9da7b3}.grid{stroke:#2b323b}.axis{stroke:#9da7b3}"
        .to_owned();
    for (place, (on_light, on_dark, _)) in STYLES.iter().enumerate() {
        let _ = write!(light, ".s{place}{{stroke:{on_light};fill:{on_light}}}");
        let _ = write!(dark, ".s{place}{{stroke:{on_dark};fill:{on_dark}}}");
    }
    // After the colours: a curve has no area.
    format!(
        "<style>{light}.curve{{fill:none}}@media (prefers-color-scheme: dark){{{dark}.curve{{fill:none}}}}</style>"
    )
}

fn axes(text: &mut String, chart: &Chart) {
    for (value, label) in &chart.up.ticks {
        let (y, label) = (y_of(chart, *value), escaped(label));
        let _ = writeln!(text, r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{RIGHT}" y2="{y:.1}"/>"#);
        let (x, y) = (LEFT - 8.0, y + 4.5);
        let _ = writeln!(text, r#"<text class="faint" x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#);
    }
    for (value, label) in &chart.across.ticks {
        let (x, label) = (x_of(chart, *value), escaped(label));
        let _ = writeln!(text, r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{BOTTOM}"/>"#);
        let y = BOTTOM + 19.0;
        let _ =
            writeln!(text, r#"<text class="faint" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
    }
    let _ = writeln!(text, r#"<path class="axis" fill="none" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>"#);
    let (middle, below) = (f64::midpoint(LEFT, RIGHT), BOTTOM + 43.0);
    let across = escaped(&chart.across.label);
    let _ =
        writeln!(text, r#"<text class="ink" x="{middle}" y="{below}" text-anchor="middle">{across}</text>"#);
    let (middle, up) = (f64::midpoint(TOP, BOTTOM), escaped(&chart.up.label));
    let _ = writeln!(
        text,
        r#"<text class="ink" transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{up}</text>"#
    );
}

fn rules(text: &mut String, chart: &Chart) {
    let is_inside = |axis: &Axis, value: f64| (axis.low..=axis.high).contains(&value);
    for rule in &chart.rules {
        let is_seen = match rule.at {
            Position::Up(value) => is_inside(&chart.up, value),
            Position::Across(value) => is_inside(&chart.across, value),
        };
        if !is_seen {
            continue;
        }
        let label = escaped(&rule.label);
        let (path, x, y, anchor) = match rule.at {
            Position::Up(value) => {
                let y = y_of(chart, value);
                (format!("M{LEFT} {y:.1}H{RIGHT}"), RIGHT - 4.0, y - 5.0, "end")
            }
            Position::Across(value) => {
                let x = x_of(chart, value);
                (format!("M{x:.1} {TOP}V{BOTTOM}"), x + 5.0, TOP + 13.0, "start")
            }
        };
        let _ = writeln!(text, r#"<path class="axis" fill="none" stroke-dasharray="4 4" d="{path}"/>"#);
        let _ = writeln!(
            text,
            r#"<text class="faint" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="12">{label}</text>"#
        );
    }
}

fn curve(text: &mut String, chart: &Chart, series: &Series) {
    let style = series.style % STYLES.len();
    let mut path = String::new();
    let mut is_begun = false;
    for (x, y) in &series.points {
        match y {
            Some(y) => {
                let (x, y) = (x_of(chart, *x), y_of(chart, *y));
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_begun { 'L' } else { 'M' });
                is_begun = true;
            }
            None => is_begun = false,
        }
    }
    line(text, style, series.is_ours, &path);
    if series.points.len() <= MARKED_MAX {
        for (x, y) in &series.points {
            if let Some(y) = y {
                mark(text, style, x_of(chart, *x), y_of(chart, *y));
            }
        }
    }
}

fn line(text: &mut String, style: usize, is_ours: bool, path: &str) {
    let dashes = STYLES.get(style).map_or("", |(_, _, dashes)| dashes);
    let width = if is_ours { "3" } else { "1.8" };
    let _ = write!(text, r#"<path class="s{style} curve" stroke-width="{width}" stroke-linejoin="round""#);
    if !dashes.is_empty() {
        let _ = write!(text, r#" stroke-dasharray="{dashes}""#);
    }
    let _ = writeln!(text, r#" d="{path}"/>"#);
}

/// A circle, a square, a triangle or a diamond, by the style.
fn mark(text: &mut String, style: usize, x: f64, y: f64) {
    let shape = match style % 4 {
        0 => format!(r#"<circle class="s{style}" cx="{x:.1}" cy="{y:.1}" r="3.6"/>"#),
        1 => {
            let (x, y) = (x - 3.3, y - 3.3);
            format!(r#"<rect class="s{style}" x="{x:.1}" y="{y:.1}" width="6.6" height="6.6"/>"#)
        }
        2 => {
            let (left, right, top, low) = (x - 4.2, x + 4.2, y - 4.4, y + 3.4);
            format!(r#"<path class="s{style}" d="M{x:.1} {top:.1}L{right:.1} {low:.1}H{left:.1}Z"/>"#)
        }
        _ => {
            let (left, right, top, low) = (x - 4.6, x + 4.6, y - 4.6, y + 4.6);
            format!(
                r#"<path class="s{style}" d="M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {low:.1}L{left:.1} {y:.1}Z"/>"#
            )
        }
    };
    let _ = writeln!(text, "{shape}");
}

fn legend(text: &mut String, chart: &Chart) {
    let (x, mut y) = (RIGHT + 18.0, TOP + 10.0);
    for series in &chart.series {
        let style = series.style % STYLES.len();
        line(text, style, series.is_ours, &format!("M{x} {y}h34"));
        if series.points.len() <= MARKED_MAX {
            mark(text, style, x + 17.0, y);
        }
        let (words, baseline) = (escaped(&series.name), y + 4.5);
        let weight = if series.is_ours { r#" font-weight="600""# } else { "" };
        let _ = writeln!(text, r#"<text class="ink" x="{}" y="{baseline}"{weight}>{words}</text>"#, x + 42.0);
        y += LEGEND_STEP;
    }
}

/// A number as people write it: no digits that say nothing.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}").trim_end_matches('0').to_owned()
    }
}

fn in_milliseconds(value: f64) -> String {
    if value >= 1000.0 { format!("{} s", plain(value / 1000.0)) } else { format!("{} ms", plain(value)) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            title: "Goodput <cpu>".to_owned(),
            subtitle: "a & b".to_owned(),
            across: Axis {
                label: "offered".to_owned(),
                scale: Scale::Logarithmic,
                low: 0.5,
                high: 10.0,
                ticks: vec![(0.5, "0.5".to_owned()), (10.0, "10".to_owned())],
            },
            up: Axis::even("per second", 243.0),
            series: vec![Series {
                name: "onehop".to_owned(),
                style: 0,
                is_ours: true,
                points: vec![(0.5, Some(0.0)), (1.0, None), (5.0, Some(250.0)), (10.0, Some(1e9))],
            }],
            rules: vec![Rule { at: Position::Up(243.0), label: "C".to_owned() }],
        }
    }

    #[test]
    fn a_place_without_a_figure_interrupts_the_line_and_has_no_mark() {
        let text = svg(&chart());
        // A new stroke begins after the gap; beyond the axis is its end.
        assert!(text.contains(&format!("d=\"M{LEFT:.1} {BOTTOM:.1}M")), "{text}");
        assert!(text.contains(&format!("L{RIGHT:.1} {TOP:.1}\"")), "{text}");
        assert_eq!(text.matches("<circle").count(), 4, "three points and the legend");
    }

    #[test]
    fn words_are_escaped_and_both_colour_schemes_are_there() {
        let text = svg(&chart());
        assert!(text.contains("<title>Goodput &lt;cpu&gt;</title>") && text.contains("a &amp; b"), "{text}");
        assert!(text.contains("prefers-color-scheme: dark") && text.contains(".paper{fill:#ffffff}"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn every_element_is_closed() {
        let text = svg(&chart());
        let mut open = Vec::new();
        for tag in text.split('<').skip(1) {
            let (inside, _) = tag.split_once('>').unwrap();
            match inside.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if inside.ends_with('/') => {}
                None => open.push(inside.split_whitespace().next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn ticks_are_round_and_reach_over_the_figures() {
        assert_eq!(even_ticks(243.0), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!(even_ticks(f64::NAN).last(), Some(&1.0));
        assert_eq!(decades(4.2, 1800.0), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(decades(10.0, 10.0), [10.0, 100.0]);
        assert_eq!(decades(0.0, 5.0), [1.0, 10.0]);
        assert_eq!((in_milliseconds(0.1), in_milliseconds(2000.0)), ("0.1 ms".to_owned(), "2 s".to_owned()));
    }
}
