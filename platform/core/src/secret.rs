//! Holds a secret so that it cannot be printed, logged or serialised by accident.
//!
//! The secret is wiped from memory when dropped. It is not hidden from anyone who can read this process's memory.

use std::fmt;

use zeroize::Zeroizing;

/// A key or token. It has no `Display`, no `Serialize` and no `Clone`; `Debug` shows only that it is there.
///
/// ```compile_fail
/// let secret = platform_core::secret::Secret::new("sk-1".to_owned());
/// println!("{secret}");
/// ```
///
/// ```compile_fail
/// fn stored(_: impl serde::Serialize) {}
/// stored(platform_core::secret::Secret::new("sk-1".to_owned()));
/// ```
///
/// ```
/// let secret = platform_core::secret::Secret::new("sk-1".to_owned());
/// assert_eq!(secret.expose(), "sk-1");
/// ```
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of `text`.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the secret itself. A review should check every caller of this function.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_show_it() {
        assert!(!format!("{:?}", Some(Secret::new("sk-canary".to_owned()))).contains("canary"));
    }
}
