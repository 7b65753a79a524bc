//! Ways to a secret, and what is said of those that are open.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory that all can reach, with a secret of `mode` in `dir`.
fn secret(mode: u32) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    set(root.path(), 0o755);
    let dir = root.path().join("dir");
    fs::create_dir(&dir).unwrap();
    set(&dir, 0o755);
    let path = dir.join("secret");
    fs::write(&path, "secret").unwrap();
    set(&path, mode);
    (root, path)
}

fn told(path: &Path) -> Option<String> {
    check_secret(path, &Trusted::own()).err().map(|error| error.to_string())
}

#[test]
fn a_secret_is_closed_to_other_users() {
    for (mode, words) in [
        (0o600, None),
        (0o400, None),
        (0o440, None),
        (0o644, Some("is open to every user of this host: `chmod o= ")),
        (0o604, Some("is open to every user")),
        (0o602, Some("is open to every user")),
    ] {
        let (_root, path) = secret(mode);
        let told = told(&path);
        assert_eq!(told.is_some(), words.is_some(), "{mode:o}: {told:?}");
        let (told, words) = (told.unwrap_or_default(), words.unwrap_or_default());
        assert!(told.contains(words), "{mode:o}: {told}");
    }
    let (_root, path) = secret(0o640);
    chown(&path, None, Some(12345)).expect("this test gives files away and must run as root");
    assert!(told(&path).unwrap().contains("is open to group 12345: `chmod g= "), "{:?}", told(&path));
    chown(&path, Some(12345), Some(0)).unwrap();
    assert!(told(&path).unwrap().contains("belongs to uid 12345"), "{:?}", told(&path));
}

#[test]
fn each_directory_on_the_way_counts() {
    let (root, path) = secret(0o600);
    let dir = path.parent().unwrap();
    set(root.path(), 0o777);
    let words = format!("{} can be written by every user of this host: `chmod o-w ", root.path().display());
    assert!(told(&path).unwrap().contains(&words), "{:?}", told(&path));
    set(root.path(), 0o1777);
    assert_eq!(told(&path), None, "in a sticky directory what has an owner stays");
    chown(dir, Some(12345), None).unwrap();
    assert!(told(&path).unwrap().contains("belongs to uid 12345"), "{:?}", told(&path));
    chown(dir, Some(0), None).unwrap();
    assert!(check_directory(dir, &Trusted::own()).is_ok());
    set(dir, 0o1777);
    assert!(
        check_directory(dir, &Trusted::own()).is_err(),
        "the sticky bit does not close the directory itself"
    );
}

#[test]
fn links_of_an_orchestrator_are_followed_and_judged() {
    let (root, path) = secret(0o600);
    let (data, key) = (root.path().join("..data"), root.path().join("key"));
    symlink("dir", &data).unwrap();
    symlink("..data/secret", &key).unwrap();
    assert_eq!(told(&key), None);
    std::os::unix::fs::lchown(&data, Some(12345), None).unwrap();
    assert!(told(&key).unwrap().contains("belongs to uid 12345"), "{:?}", told(&key));
    std::os::unix::fs::lchown(&data, Some(0), None).unwrap();
    set(&path, 0o604);
    assert!(told(&key).unwrap().contains(path.to_str().unwrap()), "{:?}", told(&key));
    let circle = root.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(matches!(check_secret(&circle, &Trusted::own()), Err(Exposure::Io { .. })));
    assert_eq!(told(&root.path().join("none/at/all")), None, "nothing is there");
}

#[test]
fn another_services_user_may_own_its_state() {
    let (_root, path) = secret(0o640);
    let dir = path.parent().unwrap();
    for path in [dir, &path] {
        chown(path, Some(12345), Some(12345)).unwrap();
    }
    assert!(told(&path).is_some());
    assert!(check_secret(&path, &Trusted::own().with_owner_of(dir)).is_ok());
}
