//! Lists the reasons why a body is refused, the first of which decides the refusal.

use std::fmt;

use super::rejection::Rejection;

/// Most reasons that a refusal names.
pub(crate) const MAX_REASONS: usize = 8;

/// Reasons why a body may not pass, in the order of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejections {
    /// First reason; it decides the code of the refusal.
    pub(crate) first: Rejection,
    /// The others, at most seven.
    pub(crate) others: Vec<Rejection>,
}

impl From<Rejection> for Rejections {
    fn from(first: Rejection) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl fmt::Display for Rejections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for other in &self.others {
            write!(f, ". Also {other}")?;
        }
        if self.others.len() + 1 == MAX_REASONS {
            f.write_str(". There may be more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejections {}
