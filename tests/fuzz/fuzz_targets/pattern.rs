//! A pattern matches what it shows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_engine::policy::fuzz::fuzz_one(data));
