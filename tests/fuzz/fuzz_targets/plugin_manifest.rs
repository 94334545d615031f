//! A manifest is valid, or its error has a place.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_lua::fuzz::fuzz_manifest(data));
