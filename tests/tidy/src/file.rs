//! file holds one source file: its text, its syntax, and the part of the repository it belongs to.

use std::{cell::OnceCell, fmt};

use proc_macro2::TokenStream;

use crate::Error;

/// Top-level directories with Rust that is not shipped.
const TOOLS: [&str; 3] = ["bench", "fuzz", "tests"];

/// The part of the repository that a Rust file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Code that is shipped.
    Product,
    /// Tests, benchmarks and examples inside a shipped crate.
    Inside,
    /// Crates that test or measure the product.
    Tools,
}

/// A file, parsed at most once.
pub struct SourceFile {
    /// Path from the repository's root, with `/`.
    pub path: String,
    /// The whole content.
    pub text: String,
    syntax: OnceCell<syn::File>,
}

impl SourceFile {
    /// Makes a file from memory, as the rules' own controls need it.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), syntax: OnceCell::new() }
    }

    /// Returns the syntax tree.
    ///
    /// # Errors
    /// If the file is not Rust.
    pub fn syntax(&self) -> Result<&syn::File, Error> {
        if let Some(parsed) = self.syntax.get() {
            return Ok(parsed);
        }
        let parsed = syn::parse_file(&self.text).map_err(|source| self.error(source))?;
        Ok(self.syntax.get_or_init(|| parsed))
    }

    /// Returns the tokens, which also show the inside of macro calls.
    ///
    /// # Errors
    /// If the file is not Rust.
    pub fn tokens(&self) -> Result<TokenStream, Error> {
        self.text.parse().map_err(|error: proc_macro2::LexError| self.error(error.into()))
    }

    /// Returns the part of the repository that the file belongs to.
    #[must_use]
    pub fn area(&self) -> Area {
        let mut parts = self.path.split('/');
        let top = parts.next().unwrap_or_default();
        if TOOLS.contains(&top) {
            Area::Tools
        } else if parts.any(|part| ["tests", "tests.rs", "benches", "examples"].contains(&part)) {
            Area::Inside
        } else {
            Area::Product
        }
    }

    fn error(&self, source: syn::Error) -> Error {
        Error::Rust { path: self.path.clone(), line: source.span().start().line, source }
    }
}

// The syntax tree has no `Debug` without a feature that doubles the parser's build time.
impl fmt::Debug for SourceFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SourceFile").field("path", &self.path).finish_non_exhaustive()
    }
}
