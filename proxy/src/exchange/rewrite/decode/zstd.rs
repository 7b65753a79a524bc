//! Decodes one zstd frame, block by block.

use platform_core::limit::ByteSize;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use super::{Coding, DecodeError, DecodeStatus};

/// Largest window: RFC 8878 (3.1.1.1.2) recommends that decoders take this much, and encoders ask for no more.
pub(super) const MAX_WINDOW: ByteSize = ByteSize::mib(8);
/// Most bytes of a block, encoded or plain (RFC 8878, 3.1.1.2.4).
const MAX_BLOCK: u64 = 128 << 10;
/// Most blocks of a frame. The largest body has 256 that are full; a block without content is work for nothing.
const MAX_BLOCKS: u64 = 16 << 10;
/// Bit of the frame's descriptor for a frame without its own window (RFC 8878, 3.1.1.1.1).
const SINGLE_SEGMENT: u8 = 1 << 5;

/// Frame that is being decoded.
pub(super) struct ZstdFrame<'e> {
    decoder: Box<FrameDecoder>,
    rest: &'e [u8],
    window: u64,
    blocks: u64,
}

impl<'e> ZstdFrame<'e> {
    pub(super) fn new(encoded: &'e [u8], limit: ByteSize) -> Result<Self, DecodeError> {
        let mut decoder = Box::new(FrameDecoder::new());
        decoder.set_max_window_size(MAX_WINDOW.0);
        let mut rest = encoded;
        decoder.reset(&mut rest).map_err(|error| error_of(&error))?;
        let size = decoder.content_size();
        if size > limit.0 {
            return Err(DecodeError::TooLarge);
        }
        let window = match *encoded {
            [_, _, _, _, descriptor, window, ..] if descriptor & SINGLE_SEGMENT == 0 => window_size(window),
            _ => size,
        };
        Ok(Self { decoder, rest, window, blocks: 0 })
    }

    pub(super) fn step(&mut self, plain: &mut Vec<u8>) -> Result<DecodeStatus, DecodeError> {
        if self.blocks == MAX_BLOCKS {
            return Err(DecodeError::Wasteful(Coding::Zstd));
        }
        self.blocks += 1;
        let malformed = DecodeError::Malformed(Coding::Zstd);
        let decoded = self.decoder.decode_blocks(&mut self.rest, BlockDecodingStrategy::UptoBlocks(1));
        decoded.map_err(|error| error_of(&error))?;
        self.decoder.collect_to_writer(&mut *plain).map_err(|_full| malformed)?;
        if !self.decoder.is_finished() {
            return Ok(DecodeStatus::More);
        }
        let size = self.decoder.content_size();
        match plain.len() as u64 {
            length if size != 0 && size != length => Err(malformed),
            _ if !self.rest.is_empty() => Err(DecodeError::Trailing(Coding::Zstd)),
            _ => Ok(DecodeStatus::Done),
        }
    }

    /// Returns the most bytes that the decoder can hold: its buffer grows with the content, by doubling, up to the window
    /// and one block.
    pub(super) fn memory(&self) -> u64 {
        2 * (self.blocks * MAX_BLOCK).min(self.window + MAX_BLOCK)
    }
}

/// Returns the size of a window by its descriptor (RFC 8878, 3.1.1.1.2).
const fn window_size(descriptor: u8) -> u64 {
    let base = 1 << (10 + (descriptor >> 3));
    base + base / 8 * (descriptor & 7) as u64
}

const fn error_of(error: &FrameDecoderError) -> DecodeError {
    match error {
        FrameDecoderError::WindowSizeTooBig { .. } => DecodeError::WindowTooLarge,
        FrameDecoderError::DictNotProvided { .. } => DecodeError::DictionaryNeeded,
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { .. }) => {
            DecodeError::Skippable
        }
        _ => DecodeError::Malformed(Coding::Zstd),
    }
}
