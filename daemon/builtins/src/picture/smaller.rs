//! PNGs made smaller, so that a screenshot needs no program for that. The picture is read row by row, and only the smaller one
//! is ever in memory as a whole. The crate `png` is not used for so little, since it brings a second copy of the decompression.

use std::io::{self, Read, Write};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use tokio_util::sync::CancellationToken;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Larger pictures take too long, and longer rows too much memory.
const MAX_PIXELS: u64 = 400_000_000;
const MAX_WIDTH: usize = 200_000;
/// After so many rows it is looked whether the call was cancelled.
const ROWS: usize = 64;

/// Red, green, blue and opacity.
type Pixel = [u8; 4];

/// A PNG with at most `longest` pixels a side, of one of which each pixel is the average of those in its place.
///
/// # Errors
/// It is damaged, interlaced or too large, or the call was cancelled.
pub(super) fn smaller(png: &[u8], longest: u32, cancel: &CancellationToken) -> io::Result<Vec<u8>> {
    let source = PngSource::of(png).ok_or_else(|| refused("it is damaged, or of a kind that is not read"))?;
    let (width, height) = (source.width, source.height);
    if width > MAX_WIDTH || width as u64 * height as u64 > MAX_PIXELS {
        return Err(refused("it has too many pixels"));
    }
    let mut canvas = Canvas::of((width, height), longest as usize);
    let mut data = ZlibDecoder::new(PieceReader { pieces: source.data.clone().into_iter(), piece: &[] });
    let (mut row, mut before) = (vec![0; source.row_bytes() + 1], vec![0; source.row_bytes()]);
    for y in 0..height {
        if y % ROWS == 0 && cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        data.read_exact(&mut row)?;
        unfilter(&mut row, &before, source.pixel_bytes())?;
        before.copy_from_slice(&row[1..]);
        let pixels = (0..width).map(|x| source.pixel(&before, x));
        canvas.add(pixels, width, y * canvas.height / height);
    }
    canvas.finish_row();
    canvas.encode()
}

pub(super) fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// The chunks of a PNG that make its picture.
struct PngSource<'a> {
    width: usize,
    height: usize,
    /// Bits of a sample.
    depth: usize,
    colours: PngColours<'a>,
    /// The opacity of the colours of a palette, or the one colour that is transparent.
    transparent: Option<&'a [u8]>,
    data: Vec<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum PngColours<'a> {
    Grey,
    Rgb,
    /// Three bytes for each colour.
    Palette(&'a [u8]),
    GreyWithOpacity,
    RgbWithOpacity,
}

impl<'a> PngSource<'a> {
    fn of(png: &'a [u8]) -> Option<Self> {
        let mut rest = png.strip_prefix(SIGNATURE)?;
        let (mut header, mut palette, mut transparent, mut data) = (None, None, None, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (kind, after) = after.split_first_chunk::<4>()?;
            let (content, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            match kind {
                b"IHDR" => header = Some(content),
                b"PLTE" => palette = Some(content),
                b"tRNS" => transparent = Some(content),
                b"IDAT" => data.push(content),
                b"IEND" => break,
                _ => {}
            }
            rest = after.get(4..)?;
        }
        let header: &[u8; 13] = header?.try_into().ok()?;
        let side = |at: usize| Some(u32::from_be_bytes(*header[at..].first_chunk()?) as usize);
        let [depth, colours, compression, filters, interlace] = *header[8..].first_chunk()?;
        let colours = match (colours, depth) {
            (0, 1 | 2 | 4 | 8 | 16) => PngColours::Grey,
            (2, 8 | 16) => PngColours::Rgb,
            (3, 1 | 2 | 4 | 8) => PngColours::Palette(palette?),
            (4, 8 | 16) => PngColours::GreyWithOpacity,
            (6, 8 | 16) => PngColours::RgbWithOpacity,
            _ => return None,
        };
        let (width, height) = (side(0)?, side(4)?);
        let is_plain = compression == 0 && filters == 0 && interlace == 0 && width > 0 && height > 0;
        is_plain.then_some(Self { width, height, depth: depth.into(), colours, transparent, data })
    }

    fn samples(&self) -> usize {
        match self.colours {
            PngColours::Grey | PngColours::Palette(_) => 1,
            PngColours::GreyWithOpacity => 2,
            PngColours::Rgb => 3,
            PngColours::RgbWithOpacity => 4,
        }
    }

    fn row_bytes(&self) -> usize {
        (self.width * self.samples() * self.depth).div_ceil(8)
    }

    /// As filters count: at least one.
    fn pixel_bytes(&self) -> usize {
        (self.samples() * self.depth / 8).max(1)
    }

    /// A sample of a row as it stands there.
    fn sample(&self, row: &[u8], index: usize) -> u16 {
        match self.depth {
            16 => u16::from_be_bytes([row[index * 2], row[index * 2 + 1]]),
            8 => row[index].into(),
            bits => {
                let (byte, place) = (index * bits / 8, index * bits % 8);
                u16::from(row[byte] >> (8 - bits - place)) & ((1 << bits) - 1)
            }
        }
    }

    /// A sample from 0 to 255.
    fn level(&self, sample: u16) -> u8 {
        match self.depth {
            16 => (sample >> 8) as u8,
            8 => sample as u8,
            bits => (sample * (255 / ((1 << bits) - 1))) as u8,
        }
    }

    fn pixel(&self, row: &[u8], x: usize) -> Pixel {
        let sample = |n: usize| self.sample(row, x * self.samples() + n);
        let level = |n: usize| self.level(sample(n));
        let is_transparent = |samples: usize| {
            self.transparent.is_some_and(|key| {
                let key = |n: usize| key.get(n * 2..n * 2 + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                (0..samples).all(|n| key(n) == Some(sample(n)))
            })
        };
        match self.colours {
            PngColours::Grey => [level(0), level(0), level(0), if is_transparent(1) { 0 } else { 255 }],
            PngColours::Rgb => [level(0), level(1), level(2), if is_transparent(3) { 0 } else { 255 }],
            PngColours::Palette(palette) => {
                let index = usize::from(sample(0));
                let opacity = self.transparent.and_then(|all| all.get(index)).copied().unwrap_or(255);
                // A colour that is missing is black.
                let colour = |n: usize| palette.get(index * 3 + n).copied().unwrap_or(0);
                [colour(0), colour(1), colour(2), opacity]
            }
            PngColours::GreyWithOpacity => [level(0), level(0), level(0), level(1)],
            PngColours::RgbWithOpacity => [level(0), level(1), level(2), level(3)],
        }
    }
}

/// Reads pieces one after another.
struct PieceReader<'a> {
    pieces: std::vec::IntoIter<&'a [u8]>,
    piece: &'a [u8],
}

impl Read for PieceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let Some(next) = self.pieces.next() else { return Ok(0) };
            self.piece = next;
        }
        self.piece.read(buffer)
    }
}

/// The bytes of a row before its filter, whose number comes first.
fn unfilter(row: &mut [u8], before: &[u8], pixel: usize) -> io::Result<()> {
    let (filter, row) = row.split_first_mut().ok_or_else(|| refused("it is damaged"))?;
    for at in 0..row.len() {
        let (left, above_left) = match at.checked_sub(pixel) {
            Some(other) => (row[other], before[other]),
            None => (0, 0),
        };
        let above = before[at];
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => above,
            3 => u16::midpoint(left.into(), above.into()) as u8,
            4 => paeth(left, above, above_left),
            _ => return Err(refused("it is damaged: a row has an unknown filter")),
        };
        row[at] = row[at].wrapping_add(guess);
    }
    Ok(())
}

/// That of the three which is nearest to their gradient.
fn paeth(left: u8, above: u8, above_left: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(above), i16::from(above_left));
    let distance = |value: i16| (a + b - c - value).abs();
    match () {
        () if distance(a) <= distance(b) && distance(a) <= distance(c) => left,
        () if distance(b) <= distance(c) => above,
        () => above_left,
    }
}

/// The smaller picture.
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<Pixel>,
    /// The row that is being filled: sums of the colours, weighted by their opacity, and how many pixels they are of.
    sums: Vec<[u64; 4]>,
    counts: Vec<u64>,
    filled: usize,
}

impl Canvas {
    /// For a picture of this size, with at most `longest` pixels a side.
    pub(super) fn of((width, height): (usize, usize), longest: usize) -> Self {
        let scaled = |side: usize| (side * longest).div_ceil(width.max(height)).clamp(1, side);
        let (width, height) = (scaled(width), scaled(height));
        let (sums, counts) = (vec![[0; 4]; width], vec![0; width]);
        Self { width, height, pixels: Vec::with_capacity(width * height), sums, counts, filled: 0 }
    }

    /// Adds a row of so many pixels to row `y`, or begins that row.
    pub(super) fn add(&mut self, pixels: impl Iterator<Item = Pixel>, count: usize, y: usize) {
        if y > self.filled {
            self.finish_row();
        }
        for (x, [red, green, blue, opacity]) in pixels.enumerate() {
            let place = x * self.width / count;
            let weighted = |colour: u8| u64::from(colour) * u64::from(opacity);
            let sums = [weighted(red), weighted(green), weighted(blue), opacity.into()];
            self.sums[place].iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
            self.counts[place] += 1;
        }
    }

    pub(super) fn finish_row(&mut self) {
        for (sums, count) in self.sums.iter().zip(&self.counts) {
            let [red, green, blue, opacity] = *sums;
            let colour = |sum: u64| (sum / opacity.max(1)) as u8;
            self.pixels.push([colour(red), colour(green), colour(blue), (opacity / (*count).max(1)) as u8]);
        }
        self.sums.fill([0; 4]);
        self.counts.fill(0);
        self.filled += 1;
    }

    /// As a PNG.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let samples = if self.pixels.iter().all(|pixel| pixel[3] == 255) { 3 } else { 4 };
        let mut data = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut before = vec![0; self.width * samples];
        for pixels in self.pixels.chunks(self.width) {
            let row: Vec<u8> = pixels.iter().flat_map(|pixel| &pixel[..samples]).copied().collect();
            data.write_all(&filtered(&row, &before, samples))?;
            before = row;
        }
        let mut png = SIGNATURE.to_vec();
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        header.extend([8, if samples == 3 { 2 } else { 6 }, 0, 0, 0]);
        for (kind, content) in [(b"IHDR", header), (b"IDAT", data.finish()?), (b"IEND", Vec::new())] {
            png.extend((content.len() as u32).to_be_bytes());
            let mut sum = Crc::new();
            sum.update(kind);
            sum.update(&content);
            png.extend(kind);
            png.extend(content);
            png.extend(sum.sum().to_be_bytes());
        }
        Ok(png)
    }
}

/// The row with the filter that leaves the smallest differences, whose number comes first.
fn filtered(row: &[u8], before: &[u8], pixel: usize) -> Vec<u8> {
    let of = |filter: u8| {
        let difference = |at: usize| {
            let (left, above_left) = at.checked_sub(pixel).map_or((0, 0), |other| (row[other], before[other]));
            let guess = match filter {
                1 => left,
                2 => before[at],
                _ => paeth(left, before[at], above_left),
            };
            row[at].wrapping_sub(guess)
        };
        std::iter::once(filter).chain((0..row.len()).map(difference)).collect::<Vec<u8>>()
    };
    let size = |filtered: &Vec<u8>| -> u64 {
        filtered[1..].iter().map(|byte| u64::from(byte.cast_signed().unsigned_abs())).sum()
    };
    [1, 2, 4].map(of).into_iter().min_by_key(size).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A PNG of these rows, each with the number of its filter.
    fn png(
        (width, height): (u32, u32),
        (depth, colours): (u8, u8),
        chunks: &[(&[u8; 4], &[u8])],
        rows: &[u8],
    ) -> Vec<u8> {
        let mut data = ZlibEncoder::new(Vec::new(), Compression::fast());
        data.write_all(rows).unwrap();
        let data = data.finish().unwrap();
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colours, 0, 0, 0]].concat();
        let (first, last) = data.split_at(data.len() / 2);
        let mut png = SIGNATURE.to_vec();
        let own: [(&[u8; 4], &[u8]); 3] = [(b"IDAT", first), (b"IDAT", last), (b"IEND", b"")];
        for (kind, content) in [(b"IHDR", header.as_slice())].iter().chain(chunks).chain(&own) {
            png.extend((content.len() as u32).to_be_bytes());
            png.extend(*kind);
            png.extend(*content);
            png.extend(b"crc.");
        }
        png
    }

    fn scaled(png: &[u8], longest: u32) -> io::Result<(usize, usize, Vec<Pixel>)> {
        let made = smaller(png, longest, &CancellationToken::new())?;
        let source = PngSource::of(&made).unwrap();
        Ok((source.width, source.height, pixels(&made)))
    }

    /// The pixels of a PNG.
    pub(in crate::picture) fn pixels(png: &[u8]) -> Vec<Pixel> {
        let source = PngSource::of(png).unwrap();
        let mut data = ZlibDecoder::new(PieceReader { pieces: source.data.clone().into_iter(), piece: &[] });
        let (mut row, mut before) = (vec![0; source.row_bytes() + 1], vec![0; source.row_bytes()]);
        let mut pixels = Vec::new();
        for _ in 0..source.height {
            data.read_exact(&mut row).unwrap();
            unfilter(&mut row, &before, source.pixel_bytes()).unwrap();
            before.copy_from_slice(&row[1..]);
            pixels.extend((0..source.width).map(|x| source.pixel(&before, x)));
        }
        pixels
    }

    #[test]
    fn each_pixel_is_the_average_of_those_in_its_place() {
        let rows = [0, 10, 20, 30, 30, 40, 50, 200, 0, 0, 202, 0, 0, 0, 30, 40, 50, 10, 20, 30, 200, 0, 0, 202, 0, 0];
        let averaged = (2, 1, vec![[20, 30, 40, 255], [201, 0, 0, 255]]);
        assert_eq!(scaled(&png((4, 2), (8, 2), &[], &rows), 2).unwrap(), averaged);
        // Nothing is seen of what is transparent.
        let rows = [0, 100, 0, 0, 255, 0, 200, 0, 0];
        assert_eq!(scaled(&png((2, 1), (8, 6), &[], &rows), 1).unwrap(), (1, 1, vec![[100, 0, 0, 127]]));
        let rows = [0, 7, 7, 7, 1, 2, 3];
        let key = [(b"tRNS", [0, 7, 0, 7, 0, 7].as_slice())];
        assert_eq!(scaled(&png((2, 1), (8, 2), &key, &rows), 2).unwrap().2, [[0, 0, 0, 0], [1, 2, 3, 255]]);
    }

    #[test]
    fn all_kinds_of_colours_and_filters_are_read() {
        let pixels = |depth_and_colours, chunks: &[(&[u8; 4], &[u8])], rows: &[u8]| {
            scaled(&png((2, 2), depth_and_colours, chunks, rows), 2)
                .unwrap()
                .2
                .iter()
                .map(|pixel| pixel[0])
                .collect::<Vec<u8>>()
        };
        assert_eq!(pixels((1, 0), &[], &[0, 0b1000_0000, 0, 0b0100_0000]), [255, 0, 0, 255]);
        assert_eq!(pixels((2, 0), &[], &[0, 0b0110_0000, 0, 0b1100_0000]), [85, 170, 255, 0]);
        assert_eq!(pixels((16, 0), &[], &[0, 1, 9, 2, 9, 0, 3, 9, 4, 9]), [1, 2, 3, 4]);
        assert_eq!(pixels((8, 4), &[], &[0, 1, 255, 2, 255, 0, 3, 255, 4, 255]), [1, 2, 3, 4]);
        let palette = [(b"PLTE", [5, 5, 5, 6, 6, 6].as_slice())];
        assert_eq!(pixels((4, 3), &palette, &[0, 0x01, 0, 0x12]), [5, 6, 6, 0]);
        assert_eq!(pixels((8, 0), &[], &[1, 10, 1, 2, 1, 1]), [10, 11, 11, 12]);
        assert_eq!(pixels((8, 0), &[], &[3, 10, 1, 4, 1, 1]), [10, 6, 11, 7]);
    }

    #[test]
    fn others_are_refused() {
        let whole = png((2, 1), (8, 0), &[], &[0, 1, 2]);
        assert!(scaled(&whole, 2).is_ok());
        let mut interlaced = whole.clone();
        interlaced[28] = 1;
        for wrong in [&interlaced, &whole[..40], &png((2, 1), (8, 0), &[], &[9, 1, 2]), &png((2, 9), (8, 0), &[], &[0])]
        {
            assert!(scaled(wrong, 2).is_err());
        }
        assert!(scaled(&png((u32::MAX, u32::MAX), (16, 6), &[], &[]), 2).is_err());
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        assert!(smaller(&whole, 2, &cancelled).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(0_u8.., 0..80), at in 0_usize..80) {
            let mut whole = png((3, 3), (8, 3), &[(b"PLTE", &[1, 2, 3])], &[0; 12]);
            drop(smaller(&bytes, 2, &CancellationToken::new()));
            for (to, from) in whole.iter_mut().skip(at).zip(&bytes) {
                *to = *from;
            }
            drop(smaller(&whole, 2, &CancellationToken::new()));
        }
    }
}
