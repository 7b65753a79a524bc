//! halt ends a judgement early: a rule that is broken makes further comparisons needless or costly.

use super::rule::{Objection, RelayRule};
use crate::error::Error;

/// Words by which git says that a directory is nested more deeply than [`crate::program`] allows.
const DEPTH: &str = "maximum allowed tree depth";

/// End of a judgement before all rules were compared.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The work breaks rules.
    Refused(Vec<Objection>),
    /// The judgement itself failed.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Halt {
    /// Creates the end by one rule.
    pub(crate) fn refused(rule: RelayRule, detail: impl AsRef<str>) -> Self {
        Self::Refused(vec![Objection::new(rule, detail)])
    }

    /// Takes a command that exceeds its limits, or git's on depth, for a fault of the work.
    pub(crate) fn costly(rule: RelayRule) -> impl FnOnce(Error) -> Self {
        move |error| match error {
            Error::LargeOutput { .. } | Error::Slow { .. } | Error::Exhausted { .. } => {
                Self::refused(rule, error.to_string())
            }
            Error::Failed { reason, .. } if reason.contains(DEPTH) => {
                Self::refused(RelayRule::DeepPath, reason)
            }
            error => Self::Failed(error),
        }
    }
}
