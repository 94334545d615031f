//! For any input, each request is answered once.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_tests::fuzz::stream(data));
