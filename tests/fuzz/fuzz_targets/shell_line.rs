//! No line that does more is allowed by the same rule.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toold_host::shell_grammar::fuzz_one(data));
