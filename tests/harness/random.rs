//! Generates random numbers from a seed.

/// Generator of random numbers (xorshift64*), which are the same on every machine.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the generator for `seed`.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    /// Returns the next number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(bits).unwrap() % end
    }
}
