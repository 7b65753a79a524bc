//! Reads a whole answer while it passes, and masks the proxy's own secrets in it.

use std::sync::Arc;

use bytes::Bytes;

use super::{names::Expected, shape::Shape};
use crate::{
    mask::{Mask, MaskedBody},
    usage::byte_order_mark::ByteOrderMark,
};

/// State of a whole answer, and the bytes of it that wait.
#[derive(Debug)]
pub(crate) struct DocumentFilter {
    shape: Shape,
    masked: MaskedBody,
    came: usize,
    mark: ByteOrderMark,
}

impl DocumentFilter {
    /// Creates a filter for a document of which nothing has come.
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self {
            shape: Shape::new(Expected::Document),
            masked: MaskedBody::new(mask),
            came: 0,
            mark: ByteOrderMark::new(),
        }
    }

    /// Returns the part of `piece` that may pass now, with bytes that waited.
    pub(crate) fn follow(&mut self, piece: Bytes) -> Bytes {
        let (text, rest) = self.mark.behind(&piece);
        self.shape.read(text, 0);
        self.shape.read(rest, 0);
        self.came += piece.len();
        self.masked.follow(piece)
    }

    /// Returns the bytes that are left when the answer ends.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.masked.rest()
    }

    /// Returns the number of bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.masked.held()
    }

    /// Returns whether any of it has come.
    pub(crate) const fn has_come(&self) -> bool {
        self.came > 0
    }

    /// Returns whether it has come whole, and is not an error. An empty one counts as an answer.
    pub(crate) fn is_answer(&self) -> bool {
        self.came == 0 || self.shape.is_answer()
    }

    /// Returns whether it is not an error as far as it has come.
    pub(crate) fn looks_like_an_answer(&self) -> bool {
        self.shape.looks_like_an_answer()
    }
}
