//! Parses the names of Debian packages that an image gets besides its own.

use std::{fmt, str::FromStr};

/// Name of a Debian package, by the rules of Debian's policy. It has no character that a shell or apt reads otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageName(String);

/// Error of a text that names no package.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not the name of a Debian package: lower-case letters, digits and `+-.`, at least two, with a letter or digit first"
)]
pub(crate) struct InvalidPackage(String);

impl FromStr for PackageName {
    type Err = InvalidPackage;

    fn from_str(text: &str) -> Result<Self, InvalidPackage> {
        let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins = text.bytes().next().is_some_and(is_alphanumeric);
        let is_name = begins && text.bytes().all(|byte| is_alphanumeric(byte) || b"+-.".contains(&byte));
        // Apt reads a sign at the end as an order to remove or install, unless a package has that name.
        let is_order = text.ends_with('-');
        match is_name && !is_order && (2..=128).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidPackage(text.to_owned())),
        }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_packages_are_read() {
        for name in ["make", "python3", "g++", "libstdc++6", "python3.11-venv", "7zip"] {
            assert_eq!(name.parse::<PackageName>().unwrap().to_string(), name);
        }
        let long = "a".repeat(129);
        for text in
            ["", "a", "Make", "-y", "make-", "make;id", "$(id)", "a b", "make=1", "./a.deb", "a/b", &long]
        {
            assert!(text.parse::<PackageName>().is_err(), "{text}");
        }
    }
}
