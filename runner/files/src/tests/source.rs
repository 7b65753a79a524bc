//! Tests what is selected of a user's directory, and that a hostile one is refused before anything is copied.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::{ffi::OsStrExt, net::UnixListener},
    path::Path,
};

use platform_core::limit::ByteSize;

use super::*;
use crate::{CopyBounds, CopyProblem, Error};

/// Returns the paths of `selection`, directories left out.
fn files(selection: &Selection) -> Vec<String> {
    let entries = selection.entries.iter();
    let files = entries.filter(|entry| entry.form != crate::selected::SelectedForm::Directory);
    files.map(|entry| entry.path.to_string()).collect()
}

fn problems(selected: Result<Selection, Error>) -> Vec<CopyProblem> {
    match selected {
        Err(Error::Uncopyable { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

fn include(names: &[&str]) -> CopyRules {
    CopyRules { include: patterns(names), ..CopyRules::default() }
}

#[test]
fn ignored_files_are_left_out() {
    let fixture = Fixture::with(&[
        (".gitignore", "target/\n*.log\n"),
        ("src/main.rs", "fn main() {}"),
        ("src/.gitignore", "!keep.log\n"),
        ("src/keep.log", ""),
        ("target/debug/app", "x"),
        ("a.log", "x"),
        (".ignore", "notes\n"),
        ("notes", "x"),
    ]);
    let tracked = fixture.select(&CopyRules::default()).unwrap();
    let expected = [".gitignore", ".ignore", "src/.gitignore", "src/keep.log", "src/main.rs"];
    assert_eq!(files(&tracked), expected);
    assert_eq!(tracked.files(), 5);
    let all = fixture.select(&CopyRules { scope: Scope::All, ..CopyRules::default() }).unwrap();
    assert_eq!(files(&all).len(), 8, "control: {:?}", files(&all));
}

#[test]
fn rules_above_a_directory_count() {
    let fixture = Fixture::with(&[(".gitignore", "/front/out\n"), ("front/out/x", ""), ("front/a", "")]);
    let selected = || Selection::of(&fixture.source().join("front"), &CopyRules::default()).unwrap();
    assert_eq!(files(&selected()), ["a", "out/x"], "control: no repository, so nothing above counts");
    fs::create_dir(fixture.source().join(".git")).unwrap();
    assert_eq!(files(&selected()), ["a"]);
}

#[test]
fn no_git_directory_is_copied() {
    let fixture = Fixture::with(&[
        (".git/config", "[remote]"),
        ("sub/.git", "gitdir: ../.git/modules/sub"),
        ("odd/.GIT/hooks/x", ""),
        ("a", ""),
    ]);
    let rules = CopyRules { scope: Scope::All, include: patterns(&["*"]), ..CopyRules::default() };
    assert_eq!(files(&fixture.select(&rules).unwrap()), ["a"]);
}

#[test]
fn secrets_are_copied_only_on_request() {
    let fixture = Fixture::with(&[
        (".gitignore", ".env\n"),
        (".env", "KEY=1"),
        (".env.example", "KEY="),
        ("deploy.pem", "-----"),
        (".aws/credentials", "x"),
        (".aws/config", "x"),
        ("a.rs", ""),
    ]);
    let cautious = fixture.select(&CopyRules::default()).unwrap();
    assert_eq!(files(&cautious), [".env.example", ".gitignore", "a.rs"]);
    let left_out: Vec<_> = cautious.left_out().iter().map(ToString::to_string).collect();
    assert_eq!(left_out, [".aws", ".env", "deploy.pem"]);
    let some = fixture.select(&include(&[".env", ".aws/config"])).unwrap();
    assert_eq!(files(&some), [".aws/config", ".env", ".env.example", ".gitignore", "a.rs"]);
    assert_eq!(some.left_out(), [path(".aws/credentials"), path("deploy.pem")]);
    let stage = Stage::write(&fixture.stages(), &fixture.run_id, &some, &mut |_| {});
    assert!(stage.is_ok(), "the directory above a named file is copied, too: {stage:?}");
    let all = fixture.select(&include(&[".env", ".aws", "*.pem"])).unwrap();
    assert_eq!(all.left_out(), []);
}

#[test]
fn links_are_copied_as_links() {
    let fixture = Fixture::with(&[("dir/a", "")]);
    fs::write(fixture.dir.path().join("secret"), "the host's own").unwrap();
    for (target, name) in [("../secret", "file"), ("/etc", "etc"), ("dir", "inside"), ("nowhere", "broken")] {
        link(target, fixture.source().join(name));
    }
    let selection = fixture.select(&CopyRules::default()).unwrap();
    assert_eq!(files(&selection), ["broken", "dir/a", "etc", "file", "inside"]);
    assert_eq!(selection.bytes(), ByteSize(0), "no target was measured");
    fixture.start_run();
    assert_eq!(fs::read_link(fixture.repo().join("file")).unwrap(), Path::new("../secret"));
    let data = fs::read(fixture.stages().join("run-1/data")).unwrap();
    assert_eq!(data, b"", "no target was read");
    assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "the host's own", "control");
}

#[test]
fn special_files_are_refused_all_at_once() {
    let fixture = Fixture::with(&[("a", "")]);
    assert!(fixture.select(&CopyRules::default()).is_ok(), "control");
    make_fifo(&fixture.source().join("pipe"));
    make_fifo(&fixture.source().join(".gitignore"));
    let _socket = UnixListener::bind(fixture.source().join("socket")).unwrap();
    let selected = fixture.select(&CopyRules::default());
    let text = selected.as_ref().unwrap_err().to_string();
    for words in ["pipe is a FIFO", ".gitignore is a FIFO", "socket is a socket"] {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(problems(selected).len(), 3);
}

#[test]
fn a_sparse_file_counts_with_its_whole_size() {
    let fixture = Fixture::with(&[("a", "")]);
    File::create(fixture.source().join("huge")).unwrap().set_len(1 << 40).unwrap();
    let found = problems(fixture.select(&CopyRules::default()));
    let expected = CopyProblem::TooLarge {
        found: ByteSize(1 << 40),
        max: CopyBounds::default().bytes,
        largest: path("huge"),
    };
    assert_eq!(found, [expected]);
    File::options().write(true).open(fixture.source().join("huge")).unwrap().set_len(1 << 20).unwrap();
    assert!(fixture.select(&CopyRules::default()).is_ok(), "control");
}

#[test]
fn many_files_are_counted_and_refused() {
    let fixture = Fixture::new();
    for dir in 0..100 {
        let dir = fixture.source().join(format!("d{dir}"));
        fs::create_dir(&dir).unwrap();
        (0..1000).for_each(|file| drop(File::create(dir.join(file.to_string())).unwrap()));
    }
    let began = std::time::Instant::now();
    let found = problems(fixture.select(&CopyRules::default()));
    println!("100,000 files were walked in {:?}", began.elapsed());
    assert_eq!(found, [CopyProblem::TooManyFiles { found: 100_100, max: 50_000 }]);
    // The walk of a tree that is larger by far ends early, as that of a whole file system would.
    let few = CopyBounds { files: 5_000, ..CopyBounds::default() };
    let found = problems(fixture.select(&CopyRules { bounds: few, ..CopyRules::default() }));
    let [CopyProblem::TooManyFiles { found: counted, max: 5_000 }] = found[..] else { panic!("{found:?}") };
    assert!((20_001..=21_101).contains(&counted), "{counted}");
    let told = found[0].to_string();
    assert!(told.starts_with(&format!("its at least {counted} files")), "{told}");
    let bounds = CopyBounds { files: 100_100, ..CopyBounds::default() };
    let rules = CopyRules { bounds, ..CopyRules::default() };
    assert_eq!(fixture.select(&rules).unwrap().files(), 100_000, "control");
}

#[test]
fn deep_trees_are_refused() {
    let fixture = Fixture::new();
    let deep = |depth: usize| vec!["d"; depth].join("/");
    fixture.write(&format!("fine/{}/a", deep(100)), "");
    assert!(fixture.select(&CopyRules::default()).is_ok(), "control");
    fixture.write(&format!("deep/{}/a", deep(200)), "");
    assert_eq!(
        problems(fixture.select(&CopyRules::default())),
        [CopyProblem::TooDeep { top: path("deep"), max: 128 }]
    );
}

#[test]
fn hostile_names_arrive_and_are_escaped() {
    let fixture = Fixture::new();
    let names: [&[u8]; 6] =
        [b"new\nline", b"esc\x1b[2J", "bidi\u{202e}gpj.sh".as_bytes(), b"\xff\xfe", b"-rf", b" blank "];
    for name in names {
        fs::write(fixture.source().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let selection = fixture.select(&CopyRules::default()).unwrap();
    for name in files(&selection) {
        assert!(name.chars().all(|c| (' '..='~').contains(&c)), "{name:?}");
    }
    fixture.start_run();
    for name in names {
        assert_eq!(fs::read(fixture.repo().join(OsStr::from_bytes(name))).unwrap(), name);
    }
}

#[test]
fn directories_of_git_itself_are_not_copied() {
    let fixture = Fixture::with(&[
        (".git/hooks/x", ""),
        ("bare/HEAD", ""),
        ("bare/objects/x", ""),
        ("bare/refs/x", ""),
    ]);
    let select = |dir: &str| Selection::of(&fixture.source().join(dir), &CopyRules::default());
    for dir in [".git", ".git/hooks", "bare", "bare/refs"] {
        assert!(matches!(select(dir), Err(crate::Error::InGitDir { .. })), "{dir}");
    }
    select("").expect("the control");
}

#[test]
fn private_keys_are_left_out_whatever_their_name() {
    let key = format!("-----BEGIN EC PRIVATE KEY-----\n{}\n", "A".repeat(64));
    let fixture = Fixture::with(&[("deploy", &key), ("notes", &key.replace("PRIVATE", "PUBLIC"))]);
    let selection = fixture.select(&CopyRules::default()).unwrap();
    assert_eq!((selection.left_out(), selection.files()), (&[path("deploy")][..], 1));
    let named = CopyRules { include: patterns(&["deploy"]), ..CopyRules::default() };
    assert_eq!(fixture.select(&named).unwrap().files(), 2, "control");
}

#[test]
fn a_pattern_reaches_into_ignored_directories() {
    let files = [(".gitignore", "build/\n"), ("build/out/app", "x"), ("build/out/other.key", "x"), ("a", "")];
    let fixture = Fixture::with(&files);
    let select =
        |include: &[&str]| fixture.select(&CopyRules { include: patterns(include), ..CopyRules::default() });
    let named = select(&["build/out/app"]).unwrap();
    assert_eq!((named.files(), named.left_out()), (3, &[][..]));
    assert_eq!(select(&[]).unwrap().files(), 2, "control");
    for include in [&["build/out/ap"][..], &["a", "*.nothing"]] {
        let refused = select(include);
        assert!(matches!(refused, Err(crate::Error::UnusedPattern { .. })), "{refused:?}");
    }
}

#[test]
fn a_linked_working_tree_has_its_excludes() {
    let main = Fixture::with(&[("a", "")]);
    let linked = main.dir.path().join("linked");
    git(&main.source(), &["init", "-q"]);
    git(&main.source(), &["add", "-A"]);
    git(&main.source(), &["commit", "-q", "-m", "first"]);
    git(&main.source(), &["worktree", "add", "-q", linked.to_str().unwrap()]);
    ["noise", "b"].iter().for_each(|name| write(&linked, name, ""));
    let files = || Selection::of(&linked, &CopyRules::default()).unwrap().files();
    assert_eq!(files(), 3, "control");
    main.write(".git/info/exclude", "noise\n");
    assert_eq!(files(), 2);
}
