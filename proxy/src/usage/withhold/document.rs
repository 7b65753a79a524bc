//! Reads a whole answer while it passes, and masks the proxy's own secrets in it.

use std::sync::Arc;

use bytes::Bytes;

use super::shape::{Expected, Shape};
use crate::{
    mask::{Mask, Masked},
    usage::mark::ByteOrderMark,
};

/// State of a whole answer, and the bytes of it that wait.
#[derive(Debug)]
pub(crate) struct Document {
    shape: Shape,
    masked: Masked,
    came: usize,
    mark: ByteOrderMark,
}

impl Document {
    /// Returns one of which nothing has come.
    pub(crate) fn by(mask: Arc<Mask>) -> Self {
        Self {
            shape: Shape::new(Expected::Document),
            masked: Masked::by(mask),
            came: 0,
            mark: ByteOrderMark::new(),
        }
    }

    /// Returns what of `piece` may pass now.
    pub(crate) fn follow(&mut self, piece: Bytes) -> Bytes {
        let (text, rest) = self.mark.behind(&piece);
        self.shape.read(text, 0);
        self.shape.read(rest, 0);
        self.came += piece.len();
        self.masked.follow(piece)
    }

    /// Returns what is left when the answer ends.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.masked.rest()
    }

    /// Bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.masked.held()
    }

    /// Returns whether any of it has come.
    pub(crate) const fn has_come(&self) -> bool {
        self.came > 0
    }

    /// Returns whether it has come whole, and is no error. An empty one says nothing.
    pub(crate) fn is_answer(&self) -> bool {
        self.came == 0 || self.shape.is_answer()
    }

    /// Returns whether it is no error as far as it has come.
    pub(crate) fn looks_like_an_answer(&self) -> bool {
        self.shape.looks_like_an_answer()
    }
}
