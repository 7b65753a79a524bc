//! Describes the many ways to write the same answer.

/// Form in which an answer is written, by the bits of a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form(pub(super) u8);

impl Form {
    /// Returns whether lines end with CR and LF.
    pub(super) const fn has_cr(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether JSON is written over many lines; in an event each of them is a `data` line.
    pub(super) const fn is_spread(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether a byte order mark comes first.
    pub(super) const fn has_mark(self) -> bool {
        self.0 & 4 != 0
    }

    /// Returns whether the content type is in capital letters.
    pub(super) const fn is_loud(self) -> bool {
        self.0 & 8 != 0
    }

    /// Returns whether figures are written with an exponent.
    pub(super) const fn has_exponent(self) -> bool {
        self.0 & 16 != 0
    }

    /// Returns the bytes of a piece.
    pub(super) const fn piece(self) -> usize {
        [usize::MAX, 1, 7, 64][(self.0 >> 5 & 3) as usize]
    }

    /// Returns whether repeated text is longer than any buffer.
    pub(super) const fn is_large(self) -> bool {
        // Only in pieces that are not the smallest.
        self.0 & 0xe0 == 0xe0
    }
}
