//! Calls are made of what a model's text says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_adapters::fuzz::fuzz_one(data));
