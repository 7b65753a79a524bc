//! Refuses names of members that two readers could understand differently.

use std::borrow::Cow;

use super::ErrorKind;

/// First characters of the names that serde_json reserves. Its `Value` takes what stands beside such a name for something
/// else, which is then parsed without a bound.
const RESERVED: &str = "$serde_json::private::";
/// Most characters of a name in an error.
const MAX_SHOWN: usize = 64;

/// Names of one object.
#[derive(Debug, Default)]
pub(super) struct Names<'t>(Vec<Cow<'t, str>>);

impl<'t> Names<'t> {
    pub(super) fn push(&mut self, name: Cow<'t, str>) {
        self.0.push(name);
    }

    /// Checks that no two names are the same.
    pub(super) fn check(&mut self) -> Result<(), ErrorKind> {
        self.0.sort_unstable();
        match self.0.array_windows().find(|[one, other]| one == other) {
            Some([name, _]) => Err(ErrorKind::Twice(shown(name))),
            None => Ok(()),
        }
    }
}

/// Returns whether serde_json reserves the name `name`.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// Returns a name for an error.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(MAX_SHOWN).flat_map(char::escape_default).collect()
}
