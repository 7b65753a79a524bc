//! ratchet compares today's offenders with the figures in `ratchet.toml`, which may only fall.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{Error, Offender, sources::Repository};

/// The file with the figures, from the repository's root.
pub const FILE: &str = "tests/tidy/ratchet.toml";

/// Offenders that a failure shows at most.
const SHOWN: usize = 100;

/// The figures that hold today.
#[derive(Debug)]
pub struct Ratchet {
    text: String,
    table: toml::Table,
}

impl Ratchet {
    /// Reads the repository's figures.
    ///
    /// # Errors
    /// If the file cannot be read or is not TOML.
    pub fn read(repository: &Repository) -> Result<Self, Error> {
        Self::parse(repository.text(FILE)?)
    }

    /// Reads figures from a text.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parse(text: String) -> Result<Self, Error> {
        let table = text.parse().map_err(|source| Error::Toml {
            path: FILE.to_owned(),
            source: Box::<toml::de::Error>::new(source),
        })?;
        Ok(Self { text, table })
    }

    /// Returns the file's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the figure called `key`, zero if the file has none.
    #[must_use]
    pub fn figure(&self, key: &str) -> usize {
        let figure = self.table.get("figures").and_then(|figures| figures.get(key));
        figure.and_then(toml::Value::as_integer).and_then(|figure| usize::try_from(figure).ok()).unwrap_or(0)
    }

    /// Returns the file's text with another value for the figure called `key`.
    #[must_use]
    pub fn with(&self, key: &str, figure: usize) -> String {
        let before = format!("\n{key} = {}\n", self.figure(key));
        self.text.replace(&before, &format!("\n{key} = {figure}\n"))
    }

    /// Returns the names of the figures in the file.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<String> {
        let figures = self.table.get("figures").and_then(toml::Value::as_table);
        figures.into_iter().flat_map(toml::Table::keys).cloned().collect()
    }

    /// Returns the commit after which the rules judge subjects.
    #[must_use]
    pub fn base_commit(&self) -> &str {
        self.table.get("base_commit").and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// Returns paths that documents name and that lie in no repository, such as those inside an image.
    #[must_use]
    pub fn foreign_paths(&self) -> BTreeSet<String> {
        let paths = self.table.get("foreign_paths").and_then(toml::Value::as_array);
        paths.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned).collect()
    }

    /// Returns what is wrong with the figure called `key`: the offenders if there are more, else the figure to write if
    /// there are fewer.
    #[must_use]
    pub fn fault(&self, key: &str, offenders: &[Offender]) -> Option<String> {
        let (most, today) = (self.figure(key), offenders.len());
        if today == most {
            return None;
        }
        if today < most {
            return Some(format!("{key}: lower the figure in ratchet.toml to {today}; it is {most}"));
        }
        let mut message = format!("{key}: {today} places, and ratchet.toml allows {most}:\n");
        for offender in offenders.iter().take(SHOWN) {
            let _infallible = writeln!(message, "  {offender}");
        }
        if today > SHOWN {
            let _infallible =
                writeln!(message, "  … `cargo run -p tidy --bin measure -- --list {key}` prints all");
        }
        Some(message)
    }
}
