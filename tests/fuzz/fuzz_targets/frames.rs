//! Messages are found in pieces as in the whole.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_tests::fuzz::frames(data));
