//! Reads everything that a world wrote.

use std::{fs, path::Path};

/// Returns all files below `dir`, with their contents.
///
/// # Panics
/// If one cannot be read.
#[must_use]
pub fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            found.push((entry.path().display().to_string(), text));
        }
    }
    found
}
