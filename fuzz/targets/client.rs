//! Hands libFuzzer's inputs to [`fuzz::client`], which says what must hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::client::holds(input));
