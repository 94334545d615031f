//! Calls are parsed from a model's text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_adapters::fuzz::fuzz_one(data));
