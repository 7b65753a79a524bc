//! Hands libFuzzer's inputs to [`fuzz::text`], which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::text::holds(input));
