//! documents checks what Markdown names: links and anchors, paths of the repository, and tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Error, Offender,
    crates::parent,
    file::SourceFile,
    markdown::{Document, Found},
    names,
    sources::Repository,
};

/// Endings by which inline code is taken for a path of the repository.
const PATHS: [&str; 7] = [".rs", ".md", ".toml", ".json", ".sh", ".mjs", ".yaml"];

/// Documents that name the test that holds a claim, besides those below `docs/`.
const CLAIMS: [&str; 2] = ["ARCHITECTURE.md", "SECURITY.md"];

/// Returns links that lead nowhere, to a file or to a heading.
#[must_use]
pub fn broken_links(repository: &Repository) -> Vec<Offender> {
    let documents: BTreeMap<&str, Document> =
        repository.markdown().map(|file| (file.path.as_str(), Document::read(&file.text))).collect();
    let mut broken = Vec::new();
    for (path, document) in &documents {
        for link in document.links.iter().filter(|link| is_relative(&link.text)) {
            if !resolves(repository, &documents, path, &link.text) {
                broken.push(offender(path, link));
            }
        }
    }
    broken
}

/// Returns pages of the book that its summary does not list: mdBook leaves them out.
#[must_use]
pub fn unlisted_pages(repository: &Repository) -> Vec<String> {
    const BOOK: &str = "docs/src/";
    const SUMMARY: &str = "docs/src/SUMMARY.md";
    let pages = || repository.markdown().filter(|file| file.path.starts_with(BOOK));
    let summary = pages().find(|file| file.path == SUMMARY).map(|file| Document::read(&file.text));
    let links = summary.map(|summary| summary.links).unwrap_or_default();
    let listed: BTreeSet<_> = links.iter().filter_map(|link| place(SUMMARY, &link.text)).collect();
    pages().map(|file| file.path.clone()).filter(|path| path != SUMMARY && !listed.contains(path)).collect()
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

fn resolves(repository: &Repository, documents: &BTreeMap<&str, Document>, from: &str, target: &str) -> bool {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = path.replace("%20", " ");
    let Some(place) = place(from, &path) else { return false };
    match (anchor, documents.get(place.as_str())) {
        (Some(anchor), Some(document)) => document.anchors.contains(anchor),
        // A line of a source file, `#L10`; nothing else can be named there.
        (Some(anchor), None) => anchor.starts_with('L') && exists(repository, &place),
        (None, _) => exists(repository, &place),
    }
}

/// Returns the path from the root that a link in the document `from` leads to.
fn place(from: &str, path: &str) -> Option<String> {
    match path.strip_prefix('/') {
        _ if path.is_empty() => Some(from.to_owned()),
        Some(rooted) => normal("", rooted),
        None => normal(parent(from), path),
    }
}

/// Joins two paths and resolves `.` and `..`; nothing, if they leave the root.
fn normal(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(repository: &Repository, path: &str) -> bool {
    repository.root().join(path).exists()
}

/// Returns inline code that looks like a path of the repository, but does not exist there.
#[must_use]
pub fn missing_paths(repository: &Repository, foreign: &BTreeSet<String>) -> Vec<Offender> {
    let mut missing = Vec::new();
    for file in repository.markdown() {
        for code in paths(file).into_iter().filter(|code| !foreign.contains(&code.text)) {
            let bases = bases(repository, file, code.line);
            let places = bases.iter().filter_map(|base| normal(base, &code.text));
            if !{ places }.any(|place| exists(repository, &place)) {
                missing.push(offender(&file.path, &code));
            }
        }
    }
    missing
}

/// Returns the paths that a document names in inline code.
#[must_use]
pub fn paths(file: &SourceFile) -> Vec<Found> {
    let code = Document::read(&file.text).code.into_iter();
    code.filter(|code| is_path(&code.text)).collect()
}

fn is_path(code: &str) -> bool {
    let is_plain = code.chars().all(|c| c.is_alphanumeric() || ['/', '.', '_', '-'].contains(&c));
    is_plain
        && code.contains('/')
        && !code.starts_with('/')
        && PATHS.iter().any(|ending| code.ends_with(ending))
}

/// Returns the directories that a path in a document may be relative to.
///
/// A document inside a crate speaks of that crate. Any other one speaks of every crate, and of the directories that
/// the same line names.
fn bases(repository: &Repository, file: &SourceFile, line: usize) -> Vec<String> {
    let own = repository.crate_of(&file.path);
    let crates = repository.crates().iter().filter(|each| own.is_none_or(|own| own.dir == each.dir));
    let crates = crates.flat_map(|each| [each.dir.clone(), format!("{}/src", each.dir)]);
    let text = file.text.lines().nth(line - 1).unwrap_or_default();
    let named = text.split('`').skip(1).step_by(2).filter(|code| repository.root().join(code).is_dir());
    let near = [String::new(), parent(&file.path).to_owned()];
    near.into_iter().chain(crates).chain(named.map(str::to_owned)).collect()
}

/// Returns the tests that documents name as `test:name`, by document.
#[must_use]
pub fn named_tests(repository: &Repository) -> Vec<Offender> {
    let claims = repository
        .markdown()
        .filter(|file| CLAIMS.contains(&file.path.as_str()) || file.path.starts_with("docs/"));
    let named = claims.flat_map(|file| {
        let code = Document::read(&file.text).code.into_iter();
        code.filter_map(|code| {
            let name = code.text.strip_prefix("test:")?.to_owned();
            Some(Offender { path: file.path.clone(), line: code.line, what: name })
        })
        .collect::<Vec<_>>()
    });
    named.collect()
}

/// Returns the tests that documents name and that do not exist.
///
/// # Errors
/// If a file does not parse.
pub fn missing_tests(repository: &Repository) -> Result<Vec<Offender>, Error> {
    let mut tests = BTreeSet::new();
    for file in repository.rust() {
        tests.extend(names::tests(file)?.into_iter().map(|test| test.what));
    }
    Ok(named_tests(repository).into_iter().filter(|named| !tests.contains(&named.what)).collect())
}

fn offender(path: &str, found: &Found) -> Offender {
    Offender { path: path.to_owned(), line: found.line, what: found.text.clone() }
}
