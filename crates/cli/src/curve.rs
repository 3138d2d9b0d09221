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

/// A bar for each size.
pub(crate) fn text(points: &[(u32, Duration)]) -> String {
    let longest = longest(points);
    let mut text = String::from("\n");
    for &(n, time) in points {
        let columns = (time.as_secs_f64() / longest * COLUMNS).round();
        // From 0 to COLUMNS, by construction.
        let bar: String = std::iter::repeat_n('█', columns as usize).collect();
        let _ = writeln!(text, "{n:>9} nodes {:>9} {bar}", seconds(time));
    }
    text
}

/// A page of SVG, with the number of nodes on a logarithmic scale.
pub(crate) fn svg(points: &[(u32, Duration)], title: &str) -> String {
    let longest = longest(points);
    let last = points.len().saturating_sub(1).max(1) as f64;
    let place = |index: usize, time: Duration| {
        let x = MARGIN + index as f64 / last * (WIDTH - 2.0 * MARGIN);
        let y = HEIGHT - MARGIN - time.as_secs_f64() / longest * (HEIGHT - 2.0 * MARGIN);
        (x, y)
    };
    let (mut line, mut marks) = (String::new(), String::new());
    for (index, &(n, time)) in points.iter().enumerate() {
        let (x, y) = place(index, time);
        let _ = write!(line, "{x:.1},{y:.1} ");
        let (base, above) = (HEIGHT - MARGIN + 20.0, y - 8.0);
        let _ = writeln!(marks, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        let _ = writeln!(marks, "<text x=\"{x:.1}\" y=\"{base:.1}\">{n}</text>");
        let _ = writeln!(marks, "<text x=\"{x:.1}\" y=\"{above:.1}\">{}</text>", seconds(time));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n\
         <text x=\"{}\" y=\"24\" font-size=\"14\">All agents up, by number of nodes: {title}</text>\n\
         <polyline fill=\"none\" stroke=\"black\" points=\"{}\"/>\n{marks}</svg>\n",
        WIDTH / 2.0,
        line.trim_end()
    )
}

fn longest(points: &[(u32, Duration)]) -> f64 {
    let longest = points.iter().map(|(_, time)| time.as_secs_f64()).fold(0.0, f64::max);
    if longest > 0.0 { longest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [(u32, Duration); 2] =
        [(8, Duration::from_millis(500)), (16, Duration::from_secs(1))];

    #[test]
    fn bars_are_as_long_as_their_times() {
        let text = text(&POINTS);
        let lengths: Vec<usize> = text.lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [0, 25, 50]);
    }

    #[test]
    fn a_curve_without_time_is_drawn_too() {
        assert!(text(&[(1, Duration::ZERO)]).contains("1 nodes"));
    }

    #[test]
    fn the_picture_has_a_point_for_each_size() {
        assert_eq!(svg(&POINTS, "flat").matches("<circle").count(), 2);
    }
}
