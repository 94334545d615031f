//! No script harms the host.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_lua::fuzz::fuzz_source(data));
