//! Lists the models that have their own series: those the configuration names. All others count as `other`, so
//! that no agent can create a series.

use platform_core::untrusted::JournalText;

/// Label of every model that the configuration does not name.
pub(super) const OTHER: &str = "other";

/// Closed set of models, the last of which is [`OTHER`].
#[derive(Debug)]
pub(crate) struct Models {
    /// Models as a record holds them, in order.
    known: Vec<String>,
}

impl Models {
    /// Creates the set of `names`, which may contain duplicates.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<_> =
            names.into_iter().map(|name| JournalText::of(&name).as_str().to_owned()).collect();
        known.sort_unstable();
        known.dedup();
        known.retain(|name| name != OTHER);
        Self { known }
    }

    /// Returns the number of labels.
    pub(super) const fn count(&self) -> usize {
        self.known.len() + 1
    }

    /// Returns the index of the model that a call requested.
    pub(super) fn index(&self, requested: Option<&JournalText>) -> usize {
        let found = |requested: &JournalText| {
            self.known.binary_search_by(|name| (**name).cmp(requested.as_str())).ok()
        };
        requested.and_then(found).unwrap_or(self.known.len())
    }

    /// Returns all labels, by index.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(String::as_str).chain([OTHER])
    }
}
