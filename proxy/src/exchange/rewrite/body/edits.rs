//! Sets values in a body without copying it: puts pieces between slices of the original.

use std::ops::Range;

use bytes::Bytes;

/// Changes to one body, in its order and not overlapping.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Position behind the opening brace of the body, where new members go.
    start: usize,
    list: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    at: Range<usize>,
    put: Bytes,
}

impl Edits {
    pub(super) fn new(start: usize) -> Self {
        Self { start, list: Vec::with_capacity(8) }
    }

    /// Adds a top-level member that the body does not have. Another member always follows it: the model. `name` needs
    /// no escapes; `value` is JSON.
    pub(crate) fn insert(&mut self, name: &str, value: &[u8]) {
        let member = [b"\"", name.as_bytes(), b"\":", value, b","].concat();
        self.replace(self.start..self.start, member.into());
    }

    /// Puts JSON in the place of a value. An earlier edit of the same value is dropped.
    pub(crate) fn replace(&mut self, at: Range<usize>, put: Bytes) {
        let key = |edit: &Edit| (edit.at.start, edit.at.end);
        let behind = self.list.partition_point(|edit| key(edit) <= (at.start, at.end));
        match behind.checked_sub(1).and_then(|before| self.list.get_mut(before)) {
            Some(same) if same.at == at && !at.is_empty() => same.put = put,
            _ => self.list.insert(behind, Edit { at, put }),
        }
    }

    pub(super) fn remove(&mut self, at: Range<usize>) {
        self.replace(at, Bytes::new());
    }

    /// Returns the body as it is sent: slices of `body`, which must be the one that was checked, with the edits between
    /// them.
    #[must_use]
    pub(crate) fn pieces(&self, body: &Bytes) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(2 * self.list.len() + 1);
        let mut from = 0;
        for edit in &self.list {
            pieces.push(body.slice(from..edit.at.start));
            pieces.push(edit.put.clone());
            from = edit.at.end;
        }
        pieces.push(body.slice(from..));
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}
