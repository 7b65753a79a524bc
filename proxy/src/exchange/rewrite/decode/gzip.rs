//! Decodes one gzip member, piece by piece.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::{Coding, DecodeError, DecodeStatus};

/// Memory of a decoder: its window and tables.
pub(super) const MEMORY: u64 = 64 << 10;
/// Most bytes that one step reads. A block can describe its codes anew in a dozen bytes, which costs microseconds.
const MAX_INPUT: usize = 4 << 10;
/// Most bytes that one step writes.
const MAX_OUTPUT: usize = 16 << 10;
/// Bytes by which a member may be longer than its content. Blocks that have no content are work for nothing.
const MAX_OVERHEAD: usize = 64 << 10;

/// Member that is being decoded.
pub(super) struct GzipMember<'e> {
    decoder: GzDecoder<Ration<'e>>,
    length: usize,
}

/// Reader that gives a limited amount at a time.
struct Ration<'e> {
    rest: &'e [u8],
    left: usize,
}

impl<'e> GzipMember<'e> {
    pub(super) fn new(encoded: &'e [u8]) -> Self {
        let ration = Ration { rest: encoded, left: MAX_INPUT };
        Self { decoder: GzDecoder::new(ration), length: encoded.len() }
    }

    pub(super) fn step(&mut self, plain: &mut Vec<u8>) -> Result<DecodeStatus, DecodeError> {
        self.decoder.get_mut().left = MAX_INPUT;
        let mut piece = [0; MAX_OUTPUT];
        match self.decoder.read(&mut piece) {
            Ok(0) if self.decoder.get_ref().rest.is_empty() => return Ok(DecodeStatus::Done),
            Ok(0) => return Err(DecodeError::Trailing(Coding::Gzip)),
            Ok(length) => plain.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_corrupt) => return Err(DecodeError::Malformed(Coding::Gzip)),
        }
        let read = self.length - self.decoder.get_ref().rest.len();
        if read > plain.len() + MAX_OVERHEAD {
            return Err(DecodeError::Wasteful(Coding::Gzip));
        }
        Ok(DecodeStatus::More)
    }
}

impl Read for Ration<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Ration<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.rest.len().min(self.left) {
            0 if !self.rest.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            length => Ok(&self.rest[..length]),
        }
    }

    fn consume(&mut self, length: usize) {
        self.rest = &self.rest[length..];
        self.left -= length;
    }
}
