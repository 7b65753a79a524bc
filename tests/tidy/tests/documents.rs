//! documents tests that Markdown names only what exists: links, anchors, paths and tests.

use std::{collections::BTreeSet, fs, path::Path};

use tidy::{
    Offender, documents,
    file::SourceFile,
    markdown::{Document, slug},
    ratchet::Ratchet,
    sources::Repository,
};

fn repository() -> Repository {
    Repository::open().expect("the repository is read")
}

#[test]
fn links_and_anchors_resolve() {
    assert_eq!(documents::broken_links(&repository()), [], "links that lead nowhere");
}

#[test]
fn the_summary_lists_every_page() {
    assert_eq!(documents::unlisted_pages(&repository()), Vec::<String>::new(), "pages beside the book");
}

#[test]
fn named_paths_exist() {
    let repository = repository();
    let foreign = Ratchet::read(&repository).expect("the ratchet is read").foreign_paths();
    assert_eq!(documents::missing_paths(&repository, &foreign), [], "paths that documents name in vain");
}

#[test]
fn foreign_paths_are_still_named() {
    let repository = repository();
    let named: BTreeSet<String> =
        repository.markdown().flat_map(documents::paths).map(|found| found.text).collect();
    let foreign = Ratchet::read(&repository).expect("the ratchet is read").foreign_paths();
    let stale: Vec<_> = foreign.difference(&named).collect();
    assert!(stale.is_empty(), "no document names {stale:?}: remove them from ratchet.toml");
}

#[test]
fn named_tests_exist() {
    let repository = repository();
    let named = documents::named_tests(&repository);
    for document in ["docs/src/explanation/invariants.md", "SECURITY.md"] {
        let count = named.iter().filter(|test| test.path == document).count();
        assert!(count > 10, "{document} names tests as `test:name`, and {count} are found");
    }
    assert_eq!(
        documents::missing_tests(&repository).expect("every file parses"),
        [],
        "tests that do not exist"
    );
}

/// Writes a small repository with a crate, and documents that name what is there and what is not.
fn planted() -> Repository {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents");
    let files = [
        (".gitignore", "/built/\n"),
        ("built/ignored.md", "[x](nowhere.md)"),
        ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
        ("a/src/lib.rs", "//! a\n#[test]\nfn holds() {}\n"),
        ("a/README.md", "`src/lib.rs` `src/gone.rs`"),
        (
            "README.md",
            "# One\n[a](#one) [b](a/README.md) [c](a/src/lib.rs#L1) [d](https://x.y)\n`a/src/lib.rs`",
        ),
        (
            "docs/bad.md",
            "[a](#one)\n[b](../README.md#two)\n[c](gone.md)\n[d](../../x.md)\n`test:holds` `test:gone`",
        ),
        ("docs/src/SUMMARY.md", "[a](guides/listed.md)"),
        ("docs/src/guides/listed.md", "# Listed\n[b](unlisted.md)"),
        ("docs/src/guides/unlisted.md", "# Unlisted"),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("it is made");
        fs::write(path, text).expect("it is written");
    }
    Repository::read(&root).expect("the repository is read")
}

#[test]
fn document_rules_see_their_offenders() {
    let repository = planted();
    let shown = |offenders: Vec<Offender>| offenders.iter().map(ToString::to_string).collect::<Vec<_>>();
    let links = [
        "docs/bad.md:1 #one",
        "docs/bad.md:2 ../README.md#two",
        "docs/bad.md:3 gone.md",
        "docs/bad.md:4 ../../x.md",
    ];
    assert_eq!(shown(documents::broken_links(&repository)), links);
    assert_eq!(shown(documents::missing_paths(&repository, &BTreeSet::new())), ["a/README.md:1 src/gone.rs"]);
    assert_eq!(documents::unlisted_pages(&repository), ["docs/src/guides/unlisted.md"]);
    let missing = documents::missing_tests(&repository).expect("every file parses");
    assert_eq!(shown(missing), ["docs/bad.md:5 gone"]);
}

#[test]
fn document_parser_finds_links_and_code() {
    let text = "# A `b` & c\n[x](y.md#z) ![i](<a b.png>) `see [not](this)` [r]: no\n[r]: def.md \"title\"\n\
                ```\n[not](there) `nor/this.rs`\n```\n<a href=\"q.md\" id=\"own\"> `src/a.rs` ``a ` b``\n# A b & c\n";
    let document = Document::read(text);
    let links: Vec<_> = document.links.iter().map(|link| (link.line, link.text.as_str())).collect();
    assert_eq!(links, [(2, "y.md#z"), (2, "a b.png"), (3, "def.md"), (7, "q.md")]);
    let code: Vec<_> = document.code.iter().map(|code| (code.line, code.text.as_str())).collect();
    assert_eq!(code, [(1, "b"), (2, "see [not](this)"), (7, "src/a.rs"), (7, "a ` b")]);
    assert_eq!(document.anchors, BTreeSet::from(["a-b--c", "a-b--c-1", "own"].map(str::to_owned)));
}

#[test]
fn slugs_are_those_of_github() {
    for (heading, expected) in [
        ("The life of a call", "the-life-of-a-call"),
        ("`sluice run`: what, why?", "sluice-run-what-why"),
        ("A [link](x.md) in it", "a-link-in-it"),
        ("Run's token_id", "runs-token_id"),
        ("Named {#own}", "named"),
    ] {
        assert_eq!(slug(heading), expected);
    }
}

#[test]
fn path_rule_takes_paths_for_paths() {
    let file = SourceFile::new(
        "x.md",
        "`a/b.rs` `a.rs` `/etc/a.toml` `a/*.rs` `a/{b}.json` `src/x.mjs --y` `c/d.yaml`",
    );
    let found: Vec<_> = documents::paths(&file).into_iter().map(|found| found.text).collect();
    assert_eq!(found, ["a/b.rs", "c/d.yaml"]);
}
