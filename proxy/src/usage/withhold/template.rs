//! Recognises an event that differs from the last one only in its texts, as most of a stream do.
//!
//! Reading each of them as JSON would cost ten times as much.

use super::shape::{Leaf, Shape};

/// The literal parts of an event, between which only texts differ from event to event.
#[derive(Debug, Default)]
pub(super) struct Template {
    /// Positions in `event` of texts of no meaning: first the one that clients join.
    gaps: Vec<(usize, usize)>,
    event: Vec<u8>,
    leaf: Option<Leaf>,
}

/// An event that differs from the last one only in its texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct TemplateMatch<'a> {
    pub(super) length: usize,
    /// The text that clients join, and its channel.
    pub(super) leaf: Leaf,
    /// The other text.
    pub(super) other: &'a [u8],
}

impl Template {
    /// Learns `event`, which passed unchanged, as the template for later events.
    pub(super) fn learn(&mut self, event: &[u8], shape: &Shape) {
        self.gaps.clear();
        self.leaf = None;
        let [leaf] = shape.leaves() else { return };
        self.leaf = Some(*leaf);
        self.gaps.push((leaf.from, leaf.to));
        if let Some(last) = shape.last_string().filter(|last| last.0 > leaf.to) {
            self.gaps.push(last);
        }
        self.event.clear();
        self.event.extend_from_slice(event);
    }

    /// Returns the event that `bytes` begin with, if it is alike.
    pub(super) fn find<'b>(&self, bytes: &'b [u8]) -> Option<TemplateMatch<'b>> {
        let leaf = self.leaf?;
        let mut at = 0;
        let mut before = 0;
        let mut texts = [(0, 0); 2];
        for (text, gap) in texts.iter_mut().zip(&self.gaps) {
            let literal = &self.event[before..gap.0];
            at += bytes.get(at..)?.strip_prefix(literal).map(|_| literal.len())?;
            let length = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
            *text = (at, at + length);
            at += length;
            before = gap.1;
        }
        let literal = &self.event[before..];
        bytes[at..].strip_prefix(literal)?;
        let [(from, to), (other, end)] = texts;
        let leaf = Leaf { from, to, ..leaf };
        Some(TemplateMatch { length: at + literal.len(), leaf, other: &bytes[other..end] })
    }
}
