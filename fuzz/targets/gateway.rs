//! Hands libFuzzer's inputs to [`fuzz::gateway`], which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::gateway::holds(input));
