//! Whether a glob can match any text of a shape: computed from the expression that the glob is matched by.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::policy::targets::{Position, TargetShape};

/// Positions in a text of the shape, as bits.
type Positions = u32;

const _: () = assert!(Position::COUNT <= Positions::BITS as usize);

/// Whether the expression of a glob, as `globset` makes it, matches a text of this shape. An
/// unreadable expression might.
pub(super) fn can_match(expression: &str, shape: TargetShape) -> bool {
    // As `globset` reads it.
    let parsed = ParserBuilder::new().utf8(false).dot_matches_new_line(true).build().parse(expression);
    let Ok(expression) = parsed else { return true };
    let reached = advance(shape, &expression, bit(Position::START));
    each(reached).any(|position| shape.accepts(position))
}

/// The positions of readers that started at one of these positions and read any text that the
/// expression matches. Exact, since a shape's next position depends on nothing but the one before
/// and the byte.
fn advance(shape: TargetShape, expression: &Hir, from: Positions) -> Positions {
    if from == 0 {
        return 0;
    }
    match expression.kind() {
        // A glob is matched against the whole text, and its anchors are at the ends.
        HirKind::Empty | HirKind::Look(_) => from,
        HirKind::Literal(literal) => literal.0.iter().fold(from, |at, byte| step(shape, at, *byte, *byte)),
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().map(|range| step(shape, from, range.start(), range.end())).fold(0, |all, more| all | more)
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut all = 0;
            for range in class.iter() {
                for sequence in regex_syntax::utf8::Utf8Sequences::new(range.start(), range.end()) {
                    let ranges = sequence.as_slice().iter();
                    all |= ranges.fold(from, |at, range| step(shape, at, range.start, range.end));
                }
            }
            all
        }
        HirKind::Capture(capture) => advance(shape, &capture.sub, from),
        HirKind::Concat(parts) => parts.iter().fold(from, |at, part| advance(shape, part, at)),
        HirKind::Alternation(parts) => parts.iter().fold(0, |all, part| all | advance(shape, part, from)),
        HirKind::Repetition(repetition) => {
            let mut at = (0..repetition.min).fold(from, |at, _| advance(shape, &repetition.sub, at));
            // Positions only add up, and there are few of them.
            let further = repetition.max.map_or(u32::MAX, |max| max - repetition.min);
            for _ in 0..further {
                let next = at | advance(shape, &repetition.sub, at);
                if next == at {
                    break;
                }
                at = next;
            }
            at
        }
    }
}

fn step(shape: TargetShape, from: Positions, first: u8, last: u8) -> Positions {
    let mut all = 0;
    for position in each(from) {
        let next = (first..=last).filter_map(|byte| shape.step(position, byte));
        all |= next.fold(0, |all, position| all | bit(position));
    }
    all
}

fn bit(position: Position) -> Positions {
    1 << position.number()
}

fn each(positions: Positions) -> impl Iterator<Item = Position> {
    (0..Position::COUNT).filter(move |number| positions & (1 << number) != 0).map(Position::of_number)
}
