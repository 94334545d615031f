//! The first picture of a GIF made smaller, as a PNG: models see no other one, and a film is soon longer than they take.

use std::io;

use tokio_util::sync::CancellationToken;

use super::smaller::{Canvas, refused};

/// A byte of memory each.
const MAX_PIXELS: usize = 100_000_000;
/// The most codes that are known at once.
const CODES: usize = 4096;
/// The first row and the step of each pass over an interlaced picture.
const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];

/// A PNG with at most `longest` pixels a side.
///
/// # Errors
/// The GIF is damaged or too large, or the call was cancelled.
pub(super) fn smaller(gif: &[u8], longest: usize, cancel: &CancellationToken) -> io::Result<Vec<u8>> {
    let frame = GifFrame::first(gif).ok_or_else(|| refused("it is damaged"))?;
    let (width, height) = frame.screen;
    if width.max(frame.width) * height.max(frame.height) > MAX_PIXELS {
        return Err(refused("it has too many pixels"));
    }
    let indices = unpacked(&frame.data, frame.code_bits, frame.width * frame.height, cancel);
    let indices = indices.filter(|indices| indices.len() == frame.width * frame.height);
    let indices = indices.ok_or_else(|| refused("it is damaged"))?;
    let mut canvas = Canvas::of((width, height), longest);
    for y in 0..height {
        let row = y.checked_sub(frame.top).filter(|row| *row < frame.height).map(|row| frame.stored_row(row));
        let row = row.map_or(&[][..], |row| &indices[row * frame.width..][..frame.width]);
        let pixel = |x: usize| x.checked_sub(frame.left).and_then(|x| row.get(x)).map_or([0; 4], |at| frame.pixel(*at));
        canvas.add((0..width).map(pixel), width, y * canvas.height / height);
    }
    canvas.finish_row();
    canvas.encode()
}

/// The first picture, which may be smaller than the screen that it is shown on.
struct GifFrame<'a> {
    screen: (usize, usize),
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    is_interlaced: bool,
    /// Three bytes for each colour.
    palette: &'a [u8],
    transparent: Option<u8>,
    /// The length of a colour's code, in bits.
    code_bits: u32,
    data: Vec<u8>,
}

impl<'a> GifFrame<'a> {
    fn first(gif: &'a [u8]) -> Option<Self> {
        let mut reader = GifReader { rest: gif.get(6..)? };
        let screen = (reader.short()?, reader.short()?);
        let flags = reader.byte()?;
        reader.take(2)?;
        let mut palette = reader.palette(flags)?;
        let mut transparent = None;
        loop {
            match reader.byte()? {
                0x21 => {
                    let is_control = reader.byte()? == 0xf9;
                    let content = reader.pieces()?;
                    if let ([flags, _, _, index], true) = (content.as_slice(), is_control) {
                        transparent = (flags & 1 == 1).then_some(*index);
                    }
                }
                0x2c => break,
                _ => return None,
            }
        }
        let [left, top, width, height] = [reader.short()?, reader.short()?, reader.short()?, reader.short()?];
        let flags = reader.byte()?;
        let own_palette = reader.palette(flags)?;
        if !own_palette.is_empty() {
            palette = own_palette;
        }
        let code_bits = u32::from(reader.byte()?);
        let is_possible = (2..=8).contains(&code_bits) && screen.0 > 0 && screen.1 > 0;
        let data = is_possible.then(|| reader.pieces()).flatten()?;
        let is_interlaced = flags & 0x40 != 0;
        Some(Self { screen, left, top, width, height, is_interlaced, palette, transparent, code_bits, data })
    }

    /// The place among the stored rows of one that is shown.
    fn stored_row(&self, row: usize) -> usize {
        if !self.is_interlaced {
            return row;
        }
        let mut before = 0;
        for (first, step) in PASSES {
            match row.checked_sub(first) {
                Some(more) if more.is_multiple_of(step) => return before + more / step,
                _ => before += self.height.saturating_sub(first).div_ceil(step),
            }
        }
        row
    }

    fn pixel(&self, index: u8) -> [u8; 4] {
        let colour = self.palette.get(usize::from(index) * 3..).and_then(<[u8]>::first_chunk);
        // A colour that is missing is black.
        let [red, green, blue] = colour.copied().unwrap_or_default();
        [red, green, blue, if self.transparent == Some(index) { 0 } else { 255 }]
    }
}

struct GifReader<'a> {
    rest: &'a [u8],
}

impl<'a> GifReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn short(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(*self.take(2)?.first_chunk()?)))
    }

    /// The colours that follow, if `flags` say that there are some.
    fn palette(&mut self, flags: u8) -> Option<&'a [u8]> {
        self.take(if flags & 0x80 == 0 { 0 } else { 6 << (flags & 7) })
    }

    /// The content of pieces that each say how long they are, the last of which is empty.
    fn pieces(&mut self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            match self.byte()? {
                0 => return Some(content),
                length => content.extend_from_slice(self.take(length.into())?),
            }
        }
    }
}

/// The first `count` bytes of what was packed as GIF does it (LZW): each code stands for one that was there before and a byte more.
fn unpacked(packed: &[u8], code_bits: u32, count: usize, cancel: &CancellationToken) -> Option<Vec<u8>> {
    let clear = 1_usize << code_bits;
    let (mut before, mut last) = ([0_u16; CODES], [0_u8; CODES]);
    let (mut length, mut next, mut previous) = (code_bits + 1, clear + 2, None);
    let (mut bits, mut held) = (0_u32, 0);
    let mut bytes = Vec::new();
    for (at, byte) in packed.iter().enumerate() {
        if at % CODES == 0 && cancel.is_cancelled() {
            return None;
        }
        bits |= u32::from(*byte) << held;
        held += 8;
        while held >= length {
            let code = (bits & ((1 << length) - 1)) as usize;
            bits >>= length;
            held -= length;
            if code == clear {
                (length, next, previous) = (code_bits + 1, clear + 2, None);
                continue;
            }
            if code == clear + 1 {
                return Some(bytes);
            }
            let is_next = code == next;
            let from = bytes.len();
            let mut walked = match previous {
                Some(previous) if is_next => previous,
                _ if code < clear || previous.is_some() && code < next => code,
                _ => return None,
            };
            while walked > clear {
                bytes.push(last[walked]);
                walked = before[walked].into();
            }
            let first = walked as u8;
            bytes.push(first);
            bytes[from..].reverse();
            if is_next {
                bytes.push(first);
            }
            if let Some(previous) = previous.filter(|_| next < CODES) {
                (before[next], last[next]) = (previous as u16, first);
                next += 1;
                if next.is_power_of_two() && next < CODES {
                    length += 1;
                }
            }
            previous = Some(code);
            if bytes.len() >= count {
                bytes.truncate(count);
                return Some(bytes);
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::smaller::tests::pixels;
    use super::*;

    /// A GIF of these blocks, with a palette of white, red, blue and black.
    fn gif((width, height): (u8, u8), blocks: &[&[u8]]) -> Vec<u8> {
        let head = [b"GIF89a".as_slice(), &[width, 0, height, 0, 0x91, 0, 0]].concat();
        let palette: &[u8] = &[255, 255, 255, 255, 0, 0, 0, 0, 255, 0, 0, 0];
        [&head, palette, &blocks.concat(), &[0x3b]].concat()
    }

    fn frame((left, top, width, height): (u8, u8, u8, u8), flags: u8, packed: &[u8]) -> Vec<u8> {
        let head = [0x2c, left, 0, top, 0, width, 0, height, 0, flags, 2, packed.len() as u8];
        [&head, packed, &[0]].concat()
    }

    /// The codes of these colours, each by itself.
    fn packed(colours: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; colours.len() + 2];
        // Before each, all that was known is forgotten, so that codes stay three bits long.
        let codes = colours.iter().flat_map(|colour| [4, *colour]).chain([5]);
        for (at, code) in codes.enumerate() {
            for bit in (0..3).filter(|bit| code >> bit & 1 == 1) {
                bytes[(at * 3 + bit) / 8] |= 1 << ((at * 3 + bit) % 8);
            }
        }
        bytes
    }

    #[track_caller]
    fn check(gif: &[u8], expected: &[[u8; 4]]) {
        assert_eq!(pixels(&smaller(gif, 10, &CancellationToken::new()).unwrap()), expected);
    }

    const WHITE: [u8; 4] = [255; 4];
    const RED: [u8; 4] = [255, 0, 0, 255];
    const BLUE: [u8; 4] = [0, 0, 255, 255];
    const NOTHING: [u8; 4] = [0; 4];

    #[test]
    fn the_first_picture_is_read() {
        let (first, second) = (frame((0, 0, 2, 1), 0, &packed(&[1, 2])), frame((0, 0, 2, 1), 0, &packed(&[0, 0])));
        check(&gif((2, 1), &[&first, &second]), &[RED, BLUE]);
        // Smaller than the screen, with a colour that is transparent.
        let control = [0x21, 0xf9, 4, 1, 0, 0, 2, 0];
        check(&gif((3, 1), &[&control, &frame((1, 0, 2, 1), 0, &packed(&[1, 2]))]), &[NOTHING, RED, NOTHING]);
        // Comments before it, and colours of its own.
        let mut own = frame((0, 0, 1, 1), 0x80, &packed(&[1]));
        own.splice(10..10, [9, 9, 9, 8, 8, 8]);
        check(&gif((1, 1), &[&[0x21, 0xfe, 2, b'h', b'i', 0], &own]), &[[8, 8, 8, 255]]);
    }

    #[test]
    fn rows_of_an_interlaced_picture_are_put_in_order() {
        // Rows 0, 4, 2, 1 and 3.
        let interlaced = frame((0, 0, 1, 5), 0x40, &packed(&[0, 2, 1, 1, 2]));
        check(&gif((1, 5), &[&interlaced]), &[WHITE, RED, RED, BLUE, BLUE]);
    }

    /// The example of the specification: ten by ten pixels, with codes that grow and one that is used as it is defined.
    #[test]
    fn codes_that_stand_for_several_colours_are_read() {
        let packed = [
            0x8c, 0x2d, 0x99, 0x87, 0x2a, 0x1c, 0xdc, 0x33, 0xa0, 0x02, 0x75, 0xec, 0x95, 0xfa, 0xa8, 0xde, 0x60, 0x8c,
            0x04, 0x91, 0x4c, 0x01,
        ];
        let colours = unpacked(&packed, 2, 100, &CancellationToken::new()).unwrap();
        let rows: Vec<String> =
            colours.chunks(10).map(|row| row.iter().map(|colour| char::from(b'0' + colour)).collect()).collect();
        let (upper, middle, lower) = ("1111122222", "1110000222", "2220000111");
        let expected = [upper, upper, upper, middle, middle, lower, lower, "2222211111", "2222211111", "2222211111"];
        assert_eq!(rows, expected);
    }

    #[test]
    fn damaged_ones_are_refused() {
        let whole = gif((2, 1), &[&frame((0, 0, 2, 1), 0, &packed(&[1, 2]))]);
        let cancel = CancellationToken::new();
        let too_few = gif((2, 2), &[&frame((0, 0, 2, 2), 0, &packed(&[1, 2]))]);
        let without_picture = gif((2, 1), &[]);
        // A code that nothing has defined.
        let unknown = gif((2, 1), &[&frame((0, 0, 2, 1), 0, &[0b111_100, 0])]);
        for wrong in [&whole[..whole.len() - 3], &too_few, &without_picture, &unknown, b"GIF89a"] {
            assert!(smaller(wrong, 10, &cancel).is_err());
        }
        cancel.cancel();
        assert!(smaller(&whole, 10, &cancel).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(0_u8.., 0..80), at in 0_usize..80) {
            let cancel = CancellationToken::new();
            let mut whole = gif((3, 3), &[&frame((0, 0, 3, 3), 0x40, &packed(&[1; 9]))]);
            drop(smaller(&bytes, 2, &cancel));
            for (to, from) in whole.iter_mut().skip(at).zip(&bytes) {
                *to = *from;
            }
            drop(smaller(&whole, 2, &cancel));
        }
    }
}
