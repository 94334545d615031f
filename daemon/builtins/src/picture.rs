//! Images as providers of models take them: which size they have, whether they are whole, and whether they move.
//!
//! Only headers and the structure are read. Where an image is too large or of another format, [`converted`] makes a smaller one
//! of it: of a PNG, a JPEG or a GIF by itself, of others by ImageMagick, if it is installed.

mod gif;
mod jpeg;
mod smaller;
mod structure;

use std::sync::Arc;

use base64::Engine as _;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_proto::tool::Block;

use crate::blocking::blocking;
use crate::picture::structure::structure;
use crate::reader_program::{ReaderError, ReaderProgram};
use crate::toolkit::Toolkit;

/// The formats that models take.
const TAKEN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Other formats that ImageMagick reads without further programs, and its names for them.
const CONVERTED: [(&str, &str); 6] = [
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/heif", "heic"),
    ("image/avif", "avif"),
    ("image/vnd.microsoft.icon", "ico"),
    ("image/vnd.adobe.photoshop", "psd"),
];
/// The longest side, in pixels.
const MAX_SIDE: u32 = 8000;
/// The longest image in base64, in bytes.
const MAX_BASE64: usize = 5 * 1024 * 1024;
/// The longest side of an image that was made smaller: models see no more of it.
const SMALLER: u32 = 2000;
/// The same where the image is still too long in bytes.
const EVEN_SMALLER: [u32; 3] = [1500, 1100, 800];
/// An image whose shorter side would have fewer pixels then shows nothing of what was in it.
const MIN_SIDE: u32 = 8;

/// An image that models take.
#[derive(Debug)]
pub(crate) struct Picture {
    mime_type: &'static str,
    width: u32,
    height: u32,
    animated: bool,
}

/// Why an image is not shown, in words that follow its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PictureProblem {
    /// A smaller or another one may be made of it.
    NotTaken(String),
    Damaged(String),
}

/// The media type of content of this kind, if it is an image. SVG is a text.
pub(crate) fn media_type(kind: Option<infer::Type>) -> Option<&'static str> {
    Some(kind.filter(|kind| kind.matcher_type() == infer::MatcherType::Image)?.mime_type())
}

/// Checks the bytes of a file of `size` bytes, which may be longer than they are.
pub(crate) fn check(mime_type: &'static str, bytes: &[u8], size: u64) -> Result<Picture, PictureProblem> {
    if !TAKEN.contains(&mime_type) {
        return Err(PictureProblem::NotTaken(format!(
            "an image, but models take PNG, JPEG, GIF and WebP only ({mime_type}, {size} bytes)"
        )));
    }
    let Some(found) = structure(mime_type, bytes).filter(|found| found.width > 0 && found.height > 0) else {
        return Err(PictureProblem::Damaged(format!("a damaged image: it has no size ({mime_type}, {size} bytes)")));
    };
    let (width, height) = (found.width, found.height);
    let facts = format!("({mime_type}, {width} x {height} pixels, {size} bytes)");
    if !found.whole && bytes.len() as u64 >= size {
        return Err(PictureProblem::Damaged(format!("a damaged image: its end is missing {facts}")));
    }
    if width.max(height) > MAX_SIDE {
        return Err(PictureProblem::NotTaken(format!("an image of more than {MAX_SIDE} pixels a side {facts}")));
    }
    if size.div_ceil(3) * 4 > MAX_BASE64 as u64 {
        let most = MAX_BASE64 / 4 * 3;
        return Err(PictureProblem::NotTaken(format!("an image of more than {most} bytes {facts}")));
    }
    Ok(Picture { mime_type, width, height, animated: found.animated })
}

impl Picture {
    /// `image/png, 3 x 4 pixels, 70 bytes`, and the image.
    pub(crate) fn show(&self, bytes: &[u8]) -> (String, Block) {
        let animated = if self.animated { "; it moves, and models see its first picture only" } else { "" };
        let words =
            format!("{}, {} x {} pixels, {} bytes{animated}", self.mime_type, self.width, self.height, bytes.len());
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        (words, Block::Image { data, mime_type: self.mime_type.to_owned() })
    }
}

/// Makes an image that models take of one that they do not take.
///
/// # Errors
/// Why that is not possible, and what helps, in words that follow `PROBLEM: `.
pub(crate) async fn converted(
    mime_type: &'static str,
    bytes: Vec<u8>,
    toolkit: &Toolkit,
    cx: &Cx,
) -> anyhow::Result<(Picture, Vec<u8>)> {
    if let Some((width, height)) = structure(mime_type, &bytes).and_then(|found| too_long(found.width, found.height)) {
        anyhow::bail!("made smaller, it would have {width} x {height} pixels and show nothing: cut a part out of it");
    }
    let bytes = Arc::new(bytes);
    let source = bytes.clone();
    if let Some(made) = blocking(cx, move |cancel| Ok(made_smaller(mime_type, &source, cancel))).await? {
        return Ok(made);
    }
    let other = CONVERTED.iter().find(|(known, _)| *known == mime_type).map(|(_, name)| *name);
    let Some(format) = other.or(TAKEN.contains(&mime_type).then(|| &mime_type["image/".len()..])) else {
        anyhow::bail!("convert it to PNG with a program that reads it");
    };
    // A photograph stays one, and a drawing keeps its sharp edges unless it is too long then.
    let results = if mime_type == "image/jpeg" { &["jpeg"][..] } else { &["png", "jpeg"] };
    let mut last = None;
    for result in results {
        let program = ReaderProgram {
            names: &["magick", "convert"],
            package: "ImageMagick (the package imagemagick)",
            arguments: vec![
                "-limit".into(),
                "memory".into(),
                "512MiB".into(),
                "-limit".into(),
                "map".into(),
                "512MiB".into(),
                format!("{format}:-[0]"),
                "-auto-orient".into(),
                "-resize".into(),
                format!("{SMALLER}x{SMALLER}>"),
                format!("{result}:-"),
            ],
        };
        let made = match program.read(bytes.to_vec(), toolkit, cx).await {
            Ok(made) => made.bytes,
            Err(ReaderError::Missing(words)) => {
                anyhow::bail!("{words}, or convert it with another program")
            }
            Err(error) => return Err(error.into()),
        };
        match media_type(infer::get(&made)).map(|mime_type| check(mime_type, &made, made.len() as u64)) {
            Some(Ok(picture)) => return Ok((picture, made)),
            Some(Err(PictureProblem::NotTaken(words) | PictureProblem::Damaged(words))) => last = Some(words),
            None => last = Some("no image".to_owned()),
        }
    }
    anyhow::bail!("ImageMagick made {} of it", last.unwrap_or_default())
}

/// The size that an image would have once it is made smaller, if it is so long that nothing would be seen.
fn too_long(width: u32, height: u32) -> Option<(u32, u32)> {
    let longest = width.max(height).max(SMALLER);
    let scaled =
        |side: u32| u32::try_from(u64::from(side) * u64::from(SMALLER) / u64::from(longest)).unwrap_or(u32::MAX);
    (scaled(width.min(height)) < MIN_SIDE && longest > SMALLER).then(|| (scaled(width).max(1), scaled(height).max(1)))
}

/// The PNG, JPEG or GIF as large as models take it; `None` if it cannot be read, which another program may.
fn made_smaller(mime_type: &'static str, bytes: &[u8], cancel: &CancellationToken) -> Option<(Picture, Vec<u8>)> {
    let made = |longest: u32| {
        let (made, result) = match mime_type {
            "image/png" => (smaller::smaller(bytes, longest, cancel), mime_type),
            "image/jpeg" => (jpeg::smaller(bytes, longest as usize), mime_type),
            "image/gif" => (gif::smaller(bytes, longest as usize, cancel), "image/png"),
            _ => return None,
        };
        let made = made.ok()?;
        let animated = structure(mime_type, bytes).is_some_and(|found| found.animated);
        let picture = check(result, &made, made.len() as u64).map(|picture| Picture { animated, ..picture });
        Some((picture, made))
    };
    for longest in std::iter::once(SMALLER).chain(EVEN_SMALLER) {
        if let (Ok(picture), bytes) = made(longest)? {
            return Some((picture, bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG with this size and, except for its end, no content.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes().into_iter().chain(height.to_be_bytes()));
        bytes.extend(b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB\x60\x82");
        bytes
    }

    fn words(mime_type: &'static str, bytes: &[u8]) -> String {
        match check(mime_type, bytes, bytes.len() as u64) {
            Ok(picture) => picture.show(bytes).0,
            Err(PictureProblem::NotTaken(words) | PictureProblem::Damaged(words)) => words,
        }
    }

    #[test]
    fn the_size_decides_what_models_take() {
        assert_eq!(words("image/png", &png(8000, 1)), "image/png, 8000 x 1 pixels, 45 bytes");
        assert_eq!(
            words("image/png", &png(8001, 1)),
            "an image of more than 8000 pixels a side (image/png, 8001 x 1 pixels, 45 bytes)"
        );
        assert!(words("image/png", &png(0, 1)).starts_with("a damaged image: it has no size"));
        let most = MAX_BASE64 as u64 / 4 * 3;
        assert!(check("image/png", &png(1, 1), most).is_ok());
        assert!(matches!(check("image/png", &png(1, 1), most + 1), Err(PictureProblem::NotTaken(_))));
    }

    #[test]
    fn an_image_that_was_cut_is_named() {
        let whole = png(3, 4);
        for end in 0..whole.len() {
            let found = words("image/png", &whole[..end]);
            assert!(found.starts_with("a damaged image"), "{end}: {found}");
        }
    }

    #[test]
    fn no_other_program_is_asked_about_an_image_that_was_cut() {
        let large = png(9000, 9000);
        assert!(words("image/png", &large).starts_with("an image of more than 8000 pixels a side"));
        assert!(words("image/png", &large[..large.len() - 12]).starts_with("a damaged image: its end is missing"));
        let most = MAX_BASE64 as u64 / 4 * 3;
        // Only its beginning was read.
        assert!(matches!(check("image/png", &large[..33], most * 20), Err(PictureProblem::NotTaken(_))));
    }

    #[test]
    fn other_formats_are_named() {
        assert_eq!(
            words("image/tiff", b"II*\0"),
            "an image, but models take PNG, JPEG, GIF and WebP only (image/tiff, 4 bytes)"
        );
    }
}
