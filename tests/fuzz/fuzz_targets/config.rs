//! Every mistake of a configuration has a place.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold::config::fuzz::fuzz_user(data));
