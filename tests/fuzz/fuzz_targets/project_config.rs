//! A project allows nothing before it is trusted.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold::config::fuzz::fuzz_project(data));
