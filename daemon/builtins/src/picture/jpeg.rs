//! JPEGs made smaller, and turned as the note of the camera says: the smaller one has no such note.
//!
//! The decoder has the whole picture in memory: three bytes for each pixel, and up to six more if it comes in several scans.
//! The encoder makes plain JPEGs, as ITU-T T.81 describes them, with one set of tables: for so little, a crate takes six
//! times as much code.

use std::f32::consts::{FRAC_1_SQRT_2, PI};
use std::io;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::smaller::{Canvas, refused};

/// Larger pictures take too much memory: this is 450 MB at most.
const MAX_PIXELS: usize = 50_000_000;

/// A JPEG with at most `longest` pixels a side, of one of which each pixel is the average of those in its place.
///
/// # Errors
/// It is damaged, too large, or of a kind that is not read.
pub(super) fn smaller(jpeg: &[u8], longest: usize) -> io::Result<Vec<u8>> {
    let damaged = |_| refused("it is damaged, or of a kind that is not read");
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let options = options.set_max_width(u16::MAX.into()).set_max_height(u16::MAX.into());
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
    decoder.decode_headers().map_err(damaged)?;
    let sides = decoder.dimensions().filter(|(width, height)| (1..=MAX_PIXELS).contains(&(width * height)));
    let (width, height) = sides.ok_or_else(|| refused("it has too many pixels"))?;
    let pixels = decoder.decode().map_err(damaged)?;
    let mut canvas = Canvas::of((width, height), longest);
    for (y, row) in pixels.chunks_exact(width * 3).enumerate() {
        let row = row.as_chunks::<3>().0.iter().map(|[red, green, blue]| [*red, *green, *blue, 255]);
        canvas.add(row, width, y * canvas.height / height);
    }
    canvas.finish_row();
    let turn = decoder.exif().and_then(|exif| orientation(exif)).unwrap_or(1);
    let stored = (canvas.width, canvas.height);
    let (width, height) = if turn < 5 { stored } else { (stored.1, stored.0) };
    let colours = |x, y| {
        let [red, green, blue, _] = canvas.pixels[place_before(turn, (x, y), stored)];
        [red, green, blue].map(f32::from)
    };
    Ok(encoded(width, height, colours))
}

/// The place in the stored picture of a pixel of the one that is shown, by the orientation of Exif. `sides` are those of the
/// stored one.
fn place_before(orientation: u16, (x, y): (usize, usize), sides: (usize, usize)) -> usize {
    let (right, bottom) = (sides.0 - 1, sides.1 - 1);
    let (x, y) = match orientation {
        2 => (right - x, y),
        3 => (right - x, bottom - y),
        4 => (x, bottom - y),
        5 => (y, x),
        6 => (y, bottom - x),
        7 => (right - y, bottom - x),
        8 => (right - y, x),
        _ => (x, y),
    };
    y * sides.0 + x
}

/// The orientation in Exif, from 1 to 8. `exif` begins with the head of a TIFF.
fn orientation(exif: &[u8]) -> Option<u16> {
    let is_little = match exif.first_chunk()? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let pair = *exif.get(at..)?.first_chunk()?;
        Some(if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
    };
    let (one, other) = (usize::from(short(4)?), usize::from(short(6)?));
    let first = if is_little { one | other << 16 } else { one << 16 | other };
    let mut entries = (0..usize::from(short(first)?)).map(|entry| first + 2 + entry * 12);
    let entry = entries.find(|entry| short(*entry) == Some(0x112))?;
    short(entry + 8).filter(|turn| (1..=8).contains(turn))
}

/// How many codes of each length there are, for the differences of the first coefficients and for all others (T.81, K.3).
const FIRST_LENGTHS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const OTHER_LENGTHS: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125];
/// The most frequent of the others, the number of zeros before a coefficient and its length in bits. The rest follows in order.
const FREQUENT: &[u8; 37] =
    b"\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\x91\xa1\
    \x08\x23\x42\xb1\xc1\x15\x52\xd1\xf0\x24\x33\x62\x72\x82";
/// No coefficient but zeros follows, and 16 zeros.
const END: u8 = 0;
const ZEROS: u8 = 0xf0;

/// A JPEG of pixels from 0 to 255: red, green and blue.
fn encoded(width: usize, height: usize, colours: impl Fn(usize, usize) -> [f32; 3]) -> Vec<u8> {
    let mut order: Vec<(usize, usize)> = (0..64).map(|n| (n % 8, n / 8)).collect();
    order.sort_by_key(|(x, y)| (x + y, if (x + y) % 2 == 1 { *y } else { *x }));
    // Coarser for what is seen less: about quality 85 of others.
    let steps: Vec<u8> = order.iter().map(|(x, y)| 4 + 2 * (x + y) as u8).collect();
    let firsts: Vec<u8> = (0..12).collect();
    let rest = (0..16).flat_map(|zeros| (1..=10).map(move |bits| zeros << 4 | bits));
    let others: Vec<u8> = FREQUENT.iter().copied().chain(rest.filter(|symbol| !FREQUENT.contains(symbol))).collect();

    let mut jpeg = b"\xff\xd8".to_vec();
    let mut segment = |marker: u8, parts: &[&[u8]]| {
        let content = parts.concat();
        jpeg.extend([0xff, marker]);
        jpeg.extend((content.len() as u16 + 2).to_be_bytes());
        jpeg.extend(content);
    };
    segment(0xe0, &[b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"]);
    segment(0xdb, &[&[0], &steps]);
    let sides = [height as u16, width as u16].map(u16::to_be_bytes);
    segment(0xc0, &[&[8], sides.as_flattened(), b"\x03\x01\x11\0\x02\x11\0\x03\x11\0"]);
    segment(0xc4, &[&[0], &FIRST_LENGTHS, &firsts, &[0x10], &OTHER_LENGTHS, &others]);
    segment(0xda, &[b"\x03\x01\0\x02\0\x03\0\0\x3f\0"]);

    let codes = [codes(&FIRST_LENGTHS, &firsts), codes(&OTHER_LENGTHS, &others)];
    let wave = |place: usize, n: usize| {
        let size = if n == 0 { FRAC_1_SQRT_2 } else { 1.0 };
        size / 2.0 * ((2 * place + 1) as f32 * n as f32 * PI / 16.0).cos()
    };
    let waves: [[f32; 8]; 8] = std::array::from_fn(|n| std::array::from_fn(|place| wave(place, n)));
    let mut data = BitWriter { bytes: jpeg, bits: 0, count: 0 };
    let mut before = [0; 3];
    for (top, left) in (0..height).step_by(8).flat_map(|top| (0..width).step_by(8).map(move |left| (top, left))) {
        // Pixels beyond the edge are as those at the edge.
        let pixel = |n: usize| colours((left + n % 8).min(width - 1), (top + n / 8).min(height - 1));
        let pixels: [[f32; 3]; 64] = std::array::from_fn(pixel);
        for (part, before) in before.iter_mut().enumerate() {
            let levels: [f32; 64] = std::array::from_fn(|n| level(part, pixels[n]));
            // First along the rows, then along the columns.
            let along: [f32; 64] =
                std::array::from_fn(|n| (0..8).map(|x| levels[n / 8 * 8 + x] * waves[n % 8][x]).sum());
            let coefficient = |(x, y): (usize, usize)| -> f32 { (0..8).map(|n| along[n * 8 + x] * waves[y][n]).sum() };
            let wanted =
                order.iter().zip(&steps).map(|(place, step)| (coefficient(*place) / f32::from(*step)).round() as i32);
            let wanted: Vec<i32> = wanted.collect();
            data.add_coefficient(&codes[0], 0, wanted[0] - *before);
            *before = wanted[0];
            let last = wanted.iter().rposition(|wanted| *wanted != 0).unwrap_or(0);
            let mut zeros = 0;
            for wanted in wanted.iter().take(last + 1).skip(1) {
                if *wanted == 0 {
                    zeros += 1;
                    continue;
                }
                (0..zeros / 16).for_each(|_| data.add(codes[1][usize::from(ZEROS)]));
                data.add_coefficient(&codes[1], zeros % 16, *wanted);
                zeros = 0;
            }
            if last < 63 {
                data.add(codes[1][usize::from(END)]);
            }
        }
    }
    // The last byte is filled with ones.
    data.add((0x7f, 7));
    data.bytes.extend(b"\xff\xd9");
    data.bytes
}

/// The brightness, or one of the two differences of colour, around zero (JFIF).
fn level(part: usize, [red, green, blue]: [f32; 3]) -> f32 {
    match part {
        0 => 0.299 * red + 0.587 * green + 0.114 * blue - 128.0,
        1 => -0.168_736 * red - 0.331_264 * green + 0.5 * blue,
        _ => 0.5 * red - 0.418_688 * green - 0.081_312 * blue,
    }
}

/// A code and its length in bits.
type BitCode = (u32, u32);

/// The code of each symbol: codes of one length are numbers that follow each other.
fn codes(lengths: &[u8; 16], symbols: &[u8]) -> Vec<BitCode> {
    let mut codes = vec![(0, 0); 256];
    let (mut code, mut symbols) = (0, symbols.iter());
    for (length, count) in (1..).zip(lengths) {
        for symbol in symbols.by_ref().take((*count).into()) {
            codes[usize::from(*symbol)] = (code, length);
            code += 1;
        }
        code <<= 1;
    }
    codes
}

struct BitWriter {
    bytes: Vec<u8>,
    bits: u32,
    count: u32,
}

impl BitWriter {
    fn add(&mut self, (code, length): BitCode) {
        self.bits = self.bits << length | code;
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.bits >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                // Otherwise it would begin a marker.
                self.bytes.push(0);
            }
        }
        self.bits &= (1 << self.count) - 1;
    }

    /// Adds how many zeros come before a coefficient, its length in bits, and these bits: for a negative one those of the number
    /// below it.
    fn add_coefficient(&mut self, codes: &[BitCode], zeros: usize, coefficient: i32) {
        let length = 32 - coefficient.unsigned_abs().leading_zeros();
        self.add(codes[zeros << 4 | length as usize]);
        let bits = if coefficient < 0 { coefficient - 1 } else { coefficient };
        self.add((bits.cast_unsigned() & ((1 << length) - 1), length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rgb = [u8; 3];

    /// Red, green, blue and white, each a quarter, from the upper left in the order of reading.
    fn quarters(width: usize, height: usize) -> impl Fn(usize, usize) -> [f32; 3] {
        move |x, y| match (x < width / 2, y < height / 2) {
            (true, true) => [255.0, 0.0, 0.0],
            (false, true) => [0.0, 255.0, 0.0],
            (true, false) => [0.0, 0.0, 255.0],
            (false, false) => [255.0, 255.0, 255.0],
        }
    }

    /// The JPEG with a note of the camera that it is to be turned.
    fn with_orientation(jpeg: &[u8], turn: u8) -> Vec<u8> {
        let mut note = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0".to_vec();
        note[29] = turn;
        [&jpeg[..2], &note, &jpeg[2..]].concat()
    }

    /// The size, and the colours in the middle of the quarters.
    fn seen(jpeg: &[u8]) -> ((usize, usize), [Rgb; 4]) {
        let mut decoder = JpegDecoder::new(ZCursor::new(jpeg));
        let pixels = decoder.decode().unwrap();
        let (width, height) = decoder.dimensions().unwrap();
        let at = |x: usize, y: usize| {
            let at = (height * y / 4 * width + width * x / 4) * 3;
            // Colours are not kept exactly.
            [pixels[at], pixels[at + 1], pixels[at + 2]].map(|level| if level < 128 { 0 } else { 255 })
        };
        ((width, height), [at(1, 1), at(3, 1), at(1, 3), at(3, 3)])
    }

    const RED: Rgb = [255, 0, 0];
    const GREEN: Rgb = [0, 255, 0];
    const BLUE: Rgb = [0, 0, 255];
    const WHITE: Rgb = [255, 255, 255];

    #[test]
    fn what_is_made_smaller_stands_as_the_camera_says() {
        let jpeg = encoded(203, 101, quarters(203, 101));
        assert_eq!(seen(&jpeg), ((203, 101), [RED, GREEN, BLUE, WHITE]));
        for (turn, colours) in [
            (1, [RED, GREEN, BLUE, WHITE]),
            (2, [GREEN, RED, WHITE, BLUE]),
            (3, [WHITE, BLUE, GREEN, RED]),
            (4, [BLUE, WHITE, RED, GREEN]),
            (5, [RED, BLUE, GREEN, WHITE]),
            (6, [BLUE, RED, WHITE, GREEN]),
            (7, [WHITE, GREEN, BLUE, RED]),
            (8, [GREEN, WHITE, RED, BLUE]),
        ] {
            let size = if turn < 5 { (100, 50) } else { (50, 100) };
            assert_eq!(seen(&smaller(&with_orientation(&jpeg, turn), 100).unwrap()), (size, colours), "{turn}");
        }
        assert_eq!(seen(&smaller(&jpeg, 500).unwrap()).0, (203, 101));
    }

    #[test]
    fn sharp_pictures_are_kept_within_a_few_levels() {
        let noise = |x: usize, y: usize| {
            let level = (x * 7919 + y * 104_729 + x * y * 31) % 256;
            [level as f32, (255 - level) as f32, (x % 256) as f32]
        };
        let jpeg = encoded(64, 40, noise);
        let pixels = JpegDecoder::new(ZCursor::new(&jpeg)).decode().unwrap();
        let wanted = (0..40).flat_map(|y| (0..64).flat_map(move |x| noise(x, y)));
        let off = pixels.iter().zip(wanted).map(|(got, wanted)| (f32::from(*got) - wanted).abs()).sum::<f32>();
        assert!(off / (pixels.len() as f32) < 12.0, "{off}");
    }

    #[test]
    fn others_are_refused() {
        let jpeg = encoded(16, 16, quarters(16, 16));
        let mut large = jpeg.clone();
        let size = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
        large[size..size + 4].fill(0xff);
        for wrong in [large.as_slice(), &jpeg[..size], b"\xff\xd8\xff"] {
            assert!(smaller(wrong, 8).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(0_u8.., 0..60), at in 0_usize..700) {
            let mut jpeg = with_orientation(&encoded(16, 16, quarters(16, 16)), 6);
            drop(smaller(&bytes, 2));
            for (to, from) in jpeg.iter_mut().skip(at).zip(&bytes) {
                *to = *from;
            }
            drop(smaller(&jpeg, 2));
            orientation(&bytes);
        }
    }
}
