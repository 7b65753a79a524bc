//! Provides randomness from the operating system, for names that must not be guessed and ids that must not collide.

/// Returns 128 random bits from getrandom(2).
///
/// # Panics
/// If the kernel has no random source: no safe fallback exists.
#[must_use]
pub fn bits() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("getrandom(2) works on every kernel this runs on");
    u128::from_ne_bytes(bytes)
}

/// Returns a random number below `count`; 0 if `count` is 0.
#[must_use]
pub fn below(count: usize) -> usize {
    usize::try_from(bits() % count.max(1) as u128).unwrap_or_default()
}
