//! The programs under test.

use std::path::PathBuf;

/// A program that was built together with this test.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join(name);
    assert!(
        path.exists(),
        "{} is missing: run `make test`, or `cargo build --workspace` first",
        path.display()
    );
    path
}
