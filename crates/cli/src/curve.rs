//! Time against the number of nodes, drawn.

use std::fmt::Write;
use std::time::Duration;

use observe::seconds;

/// Columns of the longest bar.
const COLUMNS: f64 = 50.0;

/// Width and height of the picture, and of its margins, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 60.0;

/// What so many nodes take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) nodes: u32,
    pub(crate) time: Duration,
    /// Otherwise it is computed.
    pub(crate) is_simulated: bool,
}

/// A bar for each size; a pale one where the time is computed.
pub(crate) fn text(points: &[Point]) -> String {
    let longest = longest(points);
    let mut text = String::from("\n");
    for &Point { nodes, time, is_simulated } in points {
        let columns = (time.as_secs_f64() / longest * COLUMNS).round();
        let (part, words) = if is_simulated { ('█', "") } else { ('░', " computed") };
        // From 0 to COLUMNS, by construction.
        let bar: String = std::iter::repeat_n(part, columns as usize).collect();
        let _ = writeln!(text, "{nodes:>9} nodes {:>9} {bar}{words}", seconds(time));
    }
    text
}

/// A page of SVG, with the number of nodes on a logarithmic scale. Computed points are hollow, and
/// the lines to them are dashed.
pub(crate) fn svg(points: &[Point], title: &str) -> String {
    let longest = longest(points);
    let (mut lines, mut marks) = (String::new(), String::new());
    let mut before = None;
    for point in points {
        let (x, y) = (x(points, point.nodes), y(longest, point.time));
        if let Some((x0, y0)) = before {
            let dashes = if point.is_simulated { "" } else { " stroke-dasharray=\"4 3\"" };
            let _ = writeln!(
                lines,
                "<line x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x:.1}\" y2=\"{y:.1}\" stroke=\"black\"{dashes}/>"
            );
        }
        before = Some((x, y));
        marks += &mark(point, x, y);
    }
    let legend = match points.iter().all(|point| point.is_simulated) {
        true => String::new(),
        false => {
            let (x, y) = (WIDTH / 2.0, HEIGHT - 8.0);
            format!("<text x=\"{x}\" y=\"{y}\">hollow: computed, not simulated</text>\n")
        }
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n\
         <text x=\"{}\" y=\"24\" font-size=\"14\">All agents up, by number of nodes: {title}</text>\n\
         {legend}{lines}{marks}</svg>\n",
        WIDTH / 2.0,
    )
}

/// A circle with its size and its time. Words on computed points stand lower, since the first of
/// them may be close to the last that is simulated.
fn mark(point: &Point, x: f64, y: f64) -> String {
    let Point { nodes, time, is_simulated } = *point;
    let (fill, base, beside) =
        if is_simulated { ("black", 20.0, -8.0) } else { ("white", 34.0, 16.0) };
    let (base, beside) = (HEIGHT - MARGIN + base, y + beside);
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" stroke=\"black\" fill=\"{fill}\"/>\n\
         <text x=\"{x:.1}\" y=\"{base:.1}\">{nodes}</text>\n\
         <text x=\"{x:.1}\" y=\"{beside:.1}\">{}</text>\n",
        seconds(time)
    )
}

fn x(points: &[Point], nodes: u32) -> f64 {
    let ln = |point: Option<&Point>| point.map_or(0.0, |point| f64::from(point.nodes).ln());
    let (first, last) = (ln(points.first()), ln(points.last()));
    let part = if last > first { (f64::from(nodes).ln() - first) / (last - first) } else { 0.0 };
    MARGIN + part * (WIDTH - 2.0 * MARGIN)
}

fn y(longest: f64, time: Duration) -> f64 {
    HEIGHT - MARGIN - time.as_secs_f64() / longest * (HEIGHT - 2.0 * MARGIN)
}

fn longest(points: &[Point]) -> f64 {
    let longest = points.iter().map(|point| point.time.as_secs_f64()).fold(0.0, f64::max);
    if longest > 0.0 { longest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn point(nodes: u32, time_ms: u64, is_simulated: bool) -> Point {
        Point { nodes, time: Duration::from_millis(time_ms), is_simulated }
    }

    const POINTS: [Point; 3] = [point(8, 500, true), point(16, 750, true), point(32, 1_000, false)];

    #[test]
    fn bars_are_as_long_as_their_times() {
        let text = text(&POINTS[..2]);
        let lengths: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [0, 33, 50]);
    }

    #[test]
    fn a_computed_point_is_marked_in_bars_and_in_the_picture_and_no_other_is() {
        let bars = text(&POINTS);
        let marked = |line: &&str| line.ends_with("░ computed") && !line.contains('█');
        let computed: Vec<&str> = bars.lines().filter(marked).collect();
        assert!(matches!(computed[..], [line] if line.contains("32 nodes")), "{bars}");
        let picture = svg(&POINTS, "flat");
        let counts = ["fill=\"white\"", "stroke-dasharray", "hollow: computed"];
        assert_eq!(counts.map(|mark| picture.matches(mark).count()), [1, 1, 1], "{picture}");
        let picture = svg(&POINTS[..2], "flat");
        assert_eq!(counts.map(|mark| picture.matches(mark).count()), [0, 0, 0], "{picture}");
    }

    #[test]
    fn a_curve_without_time_is_drawn_too() {
        let points = [point(1, 0, true)];
        assert!(text(&points).contains("1 nodes"));
        assert!(!svg(&points, "flat").contains("NaN"));
    }

    #[test]
    fn the_picture_has_a_point_for_each_size_on_a_logarithmic_scale() {
        let picture = svg(&POINTS, "flat");
        let at: Vec<&str> = picture.lines().filter(|line| line.starts_with("<circle")).collect();
        assert!(at[0].contains("cx=\"60.0\"") && at[1].contains("cx=\"320.0\""), "{picture}");
        assert!(at[2].contains("cx=\"580.0\"") && at.len() == 3, "{picture}");
    }
}
