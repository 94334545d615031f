//! A manifest says what a plugin may be, or where it is wrong.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_lua::fuzz::fuzz_manifest(data));
