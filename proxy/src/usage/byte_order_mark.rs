//! Skips the byte order mark with which a stream or an answer may begin, in whatever pieces it comes.

/// The mark in UTF-8.
pub(super) const BYTES: &[u8] = "\u{feff}".as_bytes();

/// Progress of the mark at the beginning of a text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ByteOrderMark {
    /// Bytes of the mark that have come; all of them where none can come any more.
    came: usize,
}

impl ByteOrderMark {
    /// Returns a mark of which nothing has come.
    pub(super) const fn new() -> Self {
        Self { came: 0 }
    }

    /// Returns what follows the mark in `piece`. In front of it are the bytes of earlier pieces that began like a mark
    /// and are text after all.
    pub(super) fn behind<'p>(&mut self, piece: &'p [u8]) -> (&'static [u8], &'p [u8]) {
        let mut rest = piece;
        while let (Some(expected), Some(byte)) = (BYTES.get(self.came), rest.first()) {
            if byte != expected {
                let came = std::mem::replace(&mut self.came, BYTES.len());
                return (&BYTES[..came], rest);
            }
            self.came += 1;
            rest = &rest[1..];
        }
        (&[], rest)
    }
}
