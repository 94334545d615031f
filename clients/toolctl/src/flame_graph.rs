//! Flame graphs as SVG: a function is as wide as the time that it and the functions that it called took.

use std::collections::BTreeMap;
use std::fmt::Write;

/// In pixels, here and below.
const WIDTH: f64 = 1_200.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 36.0;
/// Width of one character.
const LETTER: f64 = 7.2;
/// Narrower functions are left out.
const NARROWEST: f64 = 0.3;

/// The calls below one function.
#[derive(Default)]
struct FlameNode {
    us: u64,
    calls: BTreeMap<String, FlameNode>,
}

impl FlameNode {
    fn depth(&self) -> usize {
        1 + self.calls.values().map(Self::depth).max().unwrap_or(0)
    }
}

/// The picture of these stacks: the frames from the outermost to the innermost, and microseconds.
pub(crate) fn flame_graph<'a>(title: &str, stacks: impl Iterator<Item = (&'a [String], u64)>) -> String {
    let mut root = FlameNode::default();
    for (frames, us) in stacks {
        let mut node = &mut root;
        node.us += us;
        for frame in frames {
            node = node.calls.entry(frame.clone()).or_default();
            node.us += us;
        }
    }
    let height = HEAD + root.depth() as f64 * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         font-family=\"monospace\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fdfaf5\"/>\n\
         <text x=\"8\" y=\"22\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    let per_us = WIDTH / root.us.max(1) as f64;
    draw("all", &root, root.us, (0.0, height - ROW), per_us, &mut svg);
    svg += "</svg>\n";
    svg
}

/// Draws a function with its left lower corner at `(x, y)`, and those that it called above it.
fn draw(name: &str, node: &FlameNode, all: u64, (x, y): (f64, f64), per_us: f64, svg: &mut String) {
    let width = node.us as f64 * per_us;
    if width < NARROWEST {
        return;
    }
    let (ms, percent) = (node.us as f64 / 1_000.0, node.us as f64 * 100.0 / all.max(1) as f64);
    let fits = ((width - 6.0) / LETTER).max(0.0) as usize;
    let label = match name.chars().count() <= fits {
        true => name.to_owned(),
        false if fits > 3 => name.chars().take(fits - 2).chain("..".chars()).collect(),
        false => String::new(),
    };
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        svg,
        "<g><title>{}: {ms:.1} ms, {percent:.1} %</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{:.1}\" fill=\"{}\" stroke=\"#fdfaf5\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escaped(name),
        ROW - 1.0,
        color(name),
        x + 3.0,
        y + 13.0,
        escaped(&label)
    );
    let mut left = x;
    for (name, call) in &node.calls {
        draw(name, call, all, (left, y - ROW), per_us, svg);
        left += call.us as f64 * per_us;
    }
}

/// A warm colour, the same one for the same function.
fn color(name: &str) -> String {
    let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("hsl({} 75% {}%)", 15 + hash % 40, 62 + hash / 40 % 14)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_as_wide_as_their_time() {
        let frames = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let stacks = [(frames(&["execute (p.lua:1)", "sum<T> (p.lua:9)"]), 300), (frames(&["execute (p.lua:1)"]), 100)];
        let svg = flame_graph("p & co", stacks.iter().map(|(frames, us)| (frames.as_slice(), *us)));
        for part in [
            "p &amp; co</text>",
            "<title>all: 0.4 ms, 100.0 %</title><rect x=\"0.0\" y=\"72.0\" width=\"1200.0\"",
            "<title>execute (p.lua:1): 0.4 ms, 100.0 %</title><rect x=\"0.0\" y=\"54.0\" width=\"1200.0\"",
            "<title>sum&lt;T&gt; (p.lua:9): 0.3 ms, 75.0 %</title><rect x=\"0.0\" y=\"36.0\" width=\"900.0\"",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }
}
