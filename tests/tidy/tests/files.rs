//! files tests what holds for each source file: it says what it is for, and it is not too long.

use tidy::sources::Repository;

/// Lines that no file may exceed.
const WALL: usize = 500;

#[test]
fn every_file_says_what_it_is_for() {
    let repository = Repository::open().expect("the repository is read");
    assert!(repository.rust().count() > 500, "the walk misses sources");
    let silent = repository.rust().filter(|file| !file.text.starts_with("//!")).map(|file| &file.path);
    assert_eq!(silent.collect::<Vec<_>>(), [""; 0], "files that do not begin with a module comment");
}

#[test]
fn no_file_is_longer_than_the_wall() {
    let repository = Repository::open().expect("the repository is read");
    let sources = repository
        .files()
        .iter()
        .filter(|file| [".rs", ".mjs", ".sh"].iter().any(|ending| file.path.ends_with(ending)));
    let long = sources.filter(|file| file.text.lines().count() > WALL).map(|file| &file.path);
    assert_eq!(long.collect::<Vec<_>>(), [""; 0], "files of more than {WALL} lines");
}
