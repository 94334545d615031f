//! Each method answers any parameters.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_tests::fuzz::methods(data));
