//! Defines the urgency of a queued run.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Urgency of a run, compared with others in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The run can wait.
    Low,
    /// The run is as urgent as most.
    #[default]
    Normal,
    /// The run goes before others.
    High,
}

impl Priority {
    /// All priorities, the least urgent first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Returns the name of the priority.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that names no priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a priority; there are: {list}", list = Priority::ALL.map(Priority::name).join(", "))]
pub struct UnknownPriority(String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, UnknownPriority> {
        let named = Self::ALL.into_iter().find(|priority| priority.name() == text);
        named.ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}
