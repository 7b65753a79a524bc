//! The sizes a body asks for. Only read here; limiting them is another step's, which finds each place.

use std::ops::Range;

use super::fields::Size;

/// A size as it stands in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    /// `None` for null, which asks for nothing but takes the place.
    pub(crate) value: Option<u64>,
    /// Where the value is.
    pub(crate) at: Range<usize>,
}

/// The sizes a body asks for, by the names it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// `n`: how many answers.
    pub(crate) n: Option<Count>,
    /// `best_of`: how many attempts.
    pub(crate) best_of: Option<Count>,
    /// `max_tokens`
    pub(crate) max_tokens: Option<Count>,
    /// `max_completion_tokens`
    pub(crate) max_completion_tokens: Option<Count>,
    /// `max_output_tokens`
    pub(crate) max_output_tokens: Option<Count>,
}

impl Sizes {
    pub(super) fn note(&mut self, size: Size, count: Count) {
        let place = match size {
            Size::N => &mut self.n,
            Size::BestOf => &mut self.best_of,
            Size::MaxTokens => &mut self.max_tokens,
            Size::MaxCompletionTokens => &mut self.max_completion_tokens,
            Size::MaxOutputTokens => &mut self.max_output_tokens,
        };
        *place = Some(count);
    }
}
