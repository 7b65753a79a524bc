//! Hands libFuzzer's inputs to [`fuzz::token`], which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::token::holds(input));
