//! Tests that `sluice` can parse each of its calls in the documents.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    command_lines::{shell_commands, words},
    parses,
};

/// Returns the Markdown files in `dir` and in all directories below it.
fn pages(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let pages_of = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => pages(&path),
        Some(extension) if extension == "md" => vec![path],
        _ => Vec::new(),
    };
    entries.flat_map(pages_of).collect()
}

#[test]
fn every_documented_command_parses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documents = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root.join(name));
    let mut tried = 0;
    for path in pages(&root.join("docs/src")).into_iter().chain(documents) {
        for (line, command) in shell_commands(&fs::read_to_string(&path).unwrap(), "sluice") {
            let parsed = parses(&words(&command));
            assert!(parsed.is_ok(), "{}:{line}: {command}: {parsed:?}", path.display());
            tried += 1;
        }
    }
    assert!(tried > 150, "only {tried} commands were found");
    assert!(parses(&words("sluice runs show --all")).is_err(), "control");
}
