//! Bytes and texts: `hygge.base64`, `hygge.hash`, `hygge.regex`, `hygge.bytes`, and the content blocks of `ctx` that are
//! made of bytes. None of them touches anything outside of the Lua state.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mlua::{Lua, LuaString, Table, Value};
use regex::bytes::{Captures, Regex, RegexBuilder};
use sha2::{Digest, Sha256};

use crate::api::ApiTable;
use crate::vm::args::Args;

/// Bytes of a compiled pattern, and of the tables with which it is matched.
const MAX_PATTERN_MEMORY: usize = 4 << 20;
/// A pattern is matched in linear time, but cannot be stopped: longer texts are refused.
const MAX_TEXT: usize = 16 << 20;
/// How many patterns a Lua state keeps compiled.
const MAX_PATTERNS: usize = 64;
/// How many matches one call returns at most.
const MAX_MATCHES: usize = 100_000;

pub(super) fn install(hygge: &ApiTable) -> mlua::Result<()> {
    let base64 = hygge.within("base64")?;
    base64.function("encode", "hygge.base64.encode", |_, args, _| Ok(STANDARD.encode(args.bytes(1, "bytes")?)))?;
    base64.function("decode", "hygge.base64.decode", |lua, args, _| {
        let text = args.bytes(1, "text")?;
        let text: Vec<u8> = text.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(text).map_err(|error| format!("hygge.base64.decode: not Base64: {error}"))?;
        lua.create_string(bytes).map_err(|error| error.to_string())
    })?;
    hygge.function("bytes", "hygge.bytes", |_, args, _| Ok(STANDARD.encode(args.bytes(1, "bytes")?)))?;
    let hash = hygge.within("hash")?;
    hash.function("sha256", "hygge.hash.sha256", |_, args, _| Ok(hex(&Sha256::digest(args.bytes(1, "bytes")?))))?;
    hash.function("blake3", "hygge.hash.blake3", |_, args, _| {
        Ok(blake3::hash(&args.bytes(1, "bytes")?).to_hex().to_string())
    })?;
    hash.function("crc32", "hygge.hash.crc32", |_, args, _| Ok(f64::from(crc32(&args.bytes(1, "bytes")?))))?;
    let regex = hygge.within("regex")?;
    regex.function("is_match", "hygge.regex.is_match", |lua, args, _| {
        Ok(pattern(lua, args)?.is_match(&text(args, 2)?))
    })?;
    regex.function("find", "hygge.regex.find", |lua, args, _| {
        let (regex, text) = (pattern(lua, args)?, text(args, 2)?);
        let from = match args.value(3) {
            Value::Nil => 0,
            Value::Integer(place) if *place >= 1 => *place as usize - 1,
            Value::Number(place) if *place >= 1.0 => *place as usize - 1,
            _ => return Err(args.mistake(3, "from", "a place in the text, from 1")),
        };
        let found = if from <= text.len() { regex.captures_at(&text, from) } else { None };
        found.map(|captures| described(lua, &regex, &captures)).transpose().map_err(|error| error.to_string())
    })?;
    regex.function("find_all", "hygge.regex.find_all", |lua, args, _| {
        let (regex, text) = (pattern(lua, args)?, text(args, 2)?);
        let all = lua.create_table().map_err(|error| error.to_string())?;
        for captures in regex.captures_iter(&text).take(MAX_MATCHES) {
            let found = described(lua, &regex, &captures).and_then(|found| all.raw_push(found));
            found.map_err(|error| error.to_string())?;
        }
        Ok(all)
    })?;
    regex.function("replace", "hygge.regex.replace", |lua, args, _| {
        let (regex, text, with) = (pattern(lua, args)?, text(args, 2)?, args.bytes(3, "replacement")?);
        lua.create_string(regex.replace_all(&text, with.as_slice())).map_err(|error| error.to_string())
    })?;
    regex.function("split", "hygge.regex.split", |lua, args, _| {
        let (regex, text) = (pattern(lua, args)?, text(args, 2)?);
        let parts = regex.split(&text).take(MAX_MATCHES).map(|part| lua.create_string(part));
        let parts = parts.collect::<mlua::Result<Vec<LuaString>>>().and_then(|parts| lua.create_sequence_from(parts));
        parts.map_err(|error| error.to_string())
    })?;
    Ok(())
}

/// `ctx.image` and `ctx.audio`: content blocks of bytes.
pub(super) fn blocks(ctx: &ApiTable) -> mlua::Result<()> {
    ctx.function("image", "ctx.image", |lua, args, _| block(lua, args, "image", "image/png"))?;
    ctx.function("audio", "ctx.audio", |lua, args, _| block(lua, args, "audio", "audio/wav"))?;
    Ok(())
}

fn block(lua: &Lua, args: &Args, kind: &str, mime: &str) -> Result<Table, String> {
    let fields = args.fields(1, "spec")?;
    let data = match (fields.get("bytes")?, fields.optional_text("data")?) {
        (Value::String(bytes), None) => STANDARD.encode(bytes.as_bytes()),
        (Value::Nil, Some(data)) => data,
        (given, _) => return Err(fields.mistake("bytes", "a string of bytes, or data in Base64", &given)),
    };
    let named = fields.optional_text("mime_type")?.or(fields.optional_text("mime")?);
    let made = || {
        let block = lua.create_table()?;
        block.raw_set("type", kind)?;
        block.raw_set("data", data)?;
        block.raw_set("mime_type", named.unwrap_or_else(|| mime.to_owned()))?;
        Ok::<_, mlua::Error>(block)
    };
    made().map_err(|error| error.to_string())
}

/// As in gzip and PNG: the polynomial 0x04c11db7, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(args: &Args, place: usize) -> Result<Vec<u8>, String> {
    let text = args.bytes(place, "text")?;
    if text.len() > MAX_TEXT {
        let (called, length, limit) = (args.function, text.len(), MAX_TEXT >> 20);
        return Err(format!("{called}: the text has {length} bytes; the limit is {limit} MiB: match it in pieces"));
    }
    Ok(text)
}

/// The compiled patterns of a Lua state.
#[derive(Default)]
struct CompiledPatterns(HashMap<String, Arc<Regex>>);

fn pattern(lua: &Lua, args: &Args) -> Result<Arc<Regex>, String> {
    let source = args.text(1, "pattern")?;
    let mut compiled = lua.remove_app_data::<CompiledPatterns>().unwrap_or_default();
    let found = match compiled.0.get(&source) {
        Some(known) => Ok(known.clone()),
        None => {
            let made =
                RegexBuilder::new(&source).size_limit(MAX_PATTERN_MEMORY).dfa_size_limit(MAX_PATTERN_MEMORY).build();
            made.map(Arc::new).map_err(|error| format!("{}: argument 1 'pattern': {error}", args.function))
        }
    };
    if let Ok(regex) = &found {
        if compiled.0.len() >= MAX_PATTERNS {
            compiled.0.clear();
        }
        compiled.0.insert(source, regex.clone());
    }
    lua.set_app_data(compiled);
    found
}

/// A match: its text at 0, its groups from 1 and by name, and its place.
fn described(lua: &Lua, regex: &Regex, captures: &Captures) -> mlua::Result<Table> {
    let found = lua.create_table()?;
    for (place, name) in regex.capture_names().enumerate() {
        let Some(group) = captures.get(place) else { continue };
        let text = lua.create_string(group.as_bytes())?;
        if place == 0 {
            found.raw_set("text", &text)?;
            found.raw_set("first", group.start() + 1)?;
            found.raw_set("last", group.end())?;
        }
        if let Some(name) = name {
            found.raw_set(name, &text)?;
        }
        found.raw_set(place, text)?;
    }
    Ok(found)
}
