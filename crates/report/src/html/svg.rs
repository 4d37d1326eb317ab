//! Drawing: scales, ticks, and a canvas that writes SVG.
//!
//! Owns coordinates and text that is neither cut nor overlapping: widths of letters are taken a little too large rather
//! than too small. Every text is escaped. Knows nothing of what is drawn.

use std::fmt::Write as _;

use super::escaped;

/// Height of letters, in units of the drawing, which are CSS pixels at its full size.
pub(super) const LETTER: f64 = 13.0;

/// Width of a letter as a share of its height: the mean of a text in the widest of usual system fonts.
const LETTER_WIDTH: f64 = 0.56;

/// Values that are further apart than this are shown on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 25.0;

/// From values to places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// From zero to a round value above the highest.
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Scale {
        let high = if high > 0.0 && high.is_finite() { high } else { 1.0 };
        let step = round_step(high / 4.0);
        Scale { low: 0.0, high: (high / step).ceil() * step, from, to, is_logarithmic: false }
    }

    /// Exactly these ends.
    pub(super) fn exact(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, from, to, is_logarithmic: false }
    }

    /// Logarithmic between these, which are above zero.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Scale {
        let low = if low > 0.0 && low.is_finite() { low } else { 1e-9 };
        let high = if high.is_finite() && high > low { high } else { low * 2.0 };
        Scale { low, high, from, to, is_logarithmic: true }
    }

    /// From zero, or logarithmic where the values lie far apart.
    pub(super) fn fitting(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        match high / low > LOGARITHMIC_FROM {
            true => Scale::logarithmic(low * 0.8, high * 1.25, from, to),
            false => Scale::linear(high, from, to),
        }
    }

    /// Whether it is logarithmic, which the axis has to say.
    pub(super) fn is_logarithmic(&self) -> bool {
        self.is_logarithmic
    }

    /// Where a value lies; what is beyond the ends lies at them.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value.clamp(self.low, self.high) } else { self.low };
        let share = match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values along it, about as many as are wanted.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.is_logarithmic {
            for digits in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
                let ticks = self.decades(digits);
                if (2..=wanted + 2).contains(&ticks.len()) {
                    return ticks;
                }
            }
            let decades = self.decades(&[1.0]);
            if decades.len() > wanted + 2 {
                return decades.into_iter().step_by(2).collect();
            }
        }
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step * 1.000_001).floor() as i64;
        // Round steps are few by their making; the bound only guards against numbers without a meaning.
        (first..=last).take(4 * wanted.max(1)).map(|tick| tick as f64 * step).collect()
    }

    fn decades(&self, digits: &[f64]) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all =
            (first..=last).flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)));
        all.filter(|tick| (self.low..=self.high * 1.000_001).contains(tick)).collect()
    }
}

/// How a text lies at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that is being made.
#[derive(Debug)]
pub(super) struct Canvas {
    out: String,
    /// Its width.
    pub(super) width: f64,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Canvas {
        Canvas { out: String::new(), width }
    }

    /// The whole element. The title is its name for those who do not see it, the description what it shows.
    pub(super) fn finish(self, height: f64, class: &str, id: &str, title: &str, description: &str) -> String {
        format!(
            "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{id}t {id}d\" viewBox=\"0 0 {} {height:.0}\" \
             width=\"{}\" height=\"{height:.0}\">\n<title id=\"{id}t\">{}</title>\n<desc id=\"{id}d\">{}</desc>\n{}</svg>\n",
            self.width,
            self.width,
            escaped(&title.replace('`', "")),
            escaped(&description.replace('`', "")),
            self.out
        )
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.out,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A line through points. `None` is a gap.
    pub(super) fn path(&mut self, class: &str, points: impl Iterator<Item = Option<(f64, f64)>>) {
        let mut data = String::new();
        let mut letter = 'M';
        for point in points {
            match point {
                Some((x, y)) => {
                    let _ = write!(data, "{letter}{x:.1} {y:.1}");
                    letter = 'L';
                }
                None => letter = 'M',
            }
        }
        if !data.is_empty() {
            let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{data}\"/>");
        }
    }

    pub(super) fn rectangle(&mut self, class: &str, at: (f64, f64), width: f64, height: f64) {
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            at.0,
            at.1,
            width.max(0.0),
            height.max(0.0)
        );
    }

    /// Lines across a rectangle, so that it is seen without colour.
    pub(super) fn hatched(&mut self, class: &str, at: (f64, f64), width: f64, height: f64) {
        self.rectangle(class, at, width, height);
        let step = 7.0;
        let mut offset = step;
        while offset < width + height {
            let begin = (at.0 + offset.min(width), at.1 + (offset - width).max(0.0));
            let end = (at.0 + (offset - height).max(0.0), at.1 + offset.min(height));
            self.line("hatch", begin, end);
            offset += step;
        }
    }

    /// A sign of the series with this number: each has its own form.
    pub(super) fn marker(&mut self, series: usize, is_hollow: bool, (x, y): (f64, f64)) {
        let class = format!("m c{series}{}", if is_hollow { " hollow" } else { "" });
        let data = match series % 6 {
            0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", x - 4.0),
            1 => format!("M{:.1} {:.1}h7v7h-7Z", x - 3.5, y - 3.5),
            2 => format!("M{x:.1} {:.1}l4.5 8h-9Z", y - 5.0),
            3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5Z", y - 5.0),
            4 => format!("M{x:.1} {:.1}l4.5 -8h-9Z", y + 5.0),
            _ => format!("M{:.1} {:.1}h9v4h-9Z", x - 4.5, y - 2.0),
        };
        let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{data}\"/>");
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(text)
        );
    }
}

/// The width of a text, rather too large than too small.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER * LETTER_WIDTH
}

/// A text that fits into a width.
pub(super) fn fitted(text: &str, width: f64) -> String {
    let most = (width / LETTER / LETTER_WIDTH) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(std::iter::once('\u{2026}')).collect()
}

/// Moves places apart until each is at least `gap` below the one before, within the bounds as far as they reach.
pub(super) fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    let mut placed = wanted.to_vec();
    let mut least = top;
    for &at in &order {
        placed[at] = placed[at].max(least);
        least = placed[at] + gap;
    }
    let mut most = bottom;
    for &at in order.iter().rev() {
        placed[at] = placed[at].min(most);
        most = placed[at] - gap;
    }
    placed
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn round_step(rough: f64) -> f64 {
    if !(rough > 0.0 && rough.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= rough * 0.999_999);
    digits.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_scale() {
        for (scale, wanted, ticks) in [
            (Scale::linear(48_210.0, 0.0, 100.0), 5, vec![0.0, 20_000.0, 40_000.0, 60_000.0]),
            (Scale::exact(0.0, 10.0, 0.0, 100.0), 5, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (Scale::logarithmic(90.0, 1100.0, 0.0, 100.0), 5, vec![100.0, 200.0, 500.0, 1000.0]),
            (Scale::logarithmic(1.0, 1e6, 0.0, 100.0), 5, vec![1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]),
        ] {
            let found = scale.ticks(wanted);
            assert_eq!(found.len(), ticks.len(), "{found:?}");
            assert!(
                found.iter().zip(&ticks).all(|(one, other)| (one / other - 1.0).abs() < 1e-9 || one == other)
            );
        }
        let nothing = Scale::linear(f64::NAN, 0.0, 100.0);
        assert!(nothing.place(f64::NAN).is_finite() && nothing.ticks(5).len() < 10);
        assert!(Scale::fitting([].into_iter(), 0.0, 1.0).place(3.0).is_finite());
    }

    #[test]
    fn labels_are_moved_apart() {
        assert_eq!(apart(&[10.0, 12.0, 50.0], 10.0, 0.0, 100.0), [10.0, 20.0, 50.0]);
        assert_eq!(apart(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
    }
}
