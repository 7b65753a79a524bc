//! Tests paths to a secret, and the messages about those that other users can reach.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a directory that all can reach, with a secret of `mode` in `dir`.
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

/// Returns the message that refuses the secret at `path`, if it is refused.
fn refusal(path: &Path) -> Option<String> {
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
        let refusal = refusal(&path);
        assert_eq!(refusal.is_some(), words.is_some(), "{mode:o}: {refusal:?}");
        let refusal = refusal.unwrap_or_default();
        let words = words.unwrap_or_default();
        assert!(refusal.contains(words), "{mode:o}: {refusal}");
    }
    let (_root, path) = secret(0o640);
    chown(&path, None, Some(12345)).expect("this test gives files away and must run as root");
    assert!(refusal(&path).unwrap().contains("is open to group 12345: `chmod g= "), "{:?}", refusal(&path));
    chown(&path, Some(12345), Some(0)).unwrap();
    assert!(refusal(&path).unwrap().contains("belongs to uid 12345"), "{:?}", refusal(&path));
}

#[test]
fn each_directory_on_the_way_counts() {
    let (root, path) = secret(0o600);
    let dir = path.parent().unwrap();
    set(root.path(), 0o777);
    let words = format!("{} can be written by every user of this host: `chmod o-w ", root.path().display());
    assert!(refusal(&path).unwrap().contains(&words), "{:?}", refusal(&path));
    set(root.path(), 0o1777);
    assert_eq!(refusal(&path), None, "in a sticky directory what has an owner stays");
    chown(dir, Some(12345), None).unwrap();
    assert!(refusal(&path).unwrap().contains("belongs to uid 12345"), "{:?}", refusal(&path));
}

/// The same rules apply at the end of a path, whether it is a directory or a file.
#[test]
fn a_directory_or_file_is_safe_from_changes() {
    let (_root, path) = secret(0o644);
    let dir = path.parent().unwrap();
    let directory = || check_directory(dir, &Trusted::own()).map_err(|error| error.to_string());
    let file = || check_file(&path, &Trusted::own()).map_err(|error| error.to_string());
    assert_eq!((directory(), file()), (Ok(()), Ok(())));
    set(dir, 0o1777);
    assert!(
        directory().unwrap_err().contains("can be written by"),
        "sticky directories are closed on the way only"
    );
    set(dir, 0o755);
    set(&path, 0o666);
    assert!(file().unwrap_err().contains("can be written by every user"));
    for at in [dir, &path] {
        chown(at, Some(12345), None).unwrap();
    }
    for refused in [directory(), file()] {
        assert!(refused.unwrap_err().contains("belongs to uid 12345"));
    }
    for at in [dir, &path] {
        chown(at, Some(0), None).unwrap();
    }
    let refused = check_directory(&path, &Trusted::own()).unwrap_err().to_string();
    assert!(refused.ends_with("secret is not a directory"), "{refused}");
    let refused = check_file(dir, &Trusted::own()).unwrap_err().to_string();
    assert!(refused.ends_with("dir is not a regular file"), "{refused}");
}

#[test]
fn links_of_an_orchestrator_are_checked() {
    let (root, path) = secret(0o600);
    let data = root.path().join("..data");
    let key = root.path().join("key");
    symlink("dir", &data).unwrap();
    symlink("..data/secret", &key).unwrap();
    assert_eq!(refusal(&key), None);
    std::os::unix::fs::lchown(&data, Some(12345), None).unwrap();
    assert!(refusal(&key).unwrap().contains("belongs to uid 12345"), "{:?}", refusal(&key));
    std::os::unix::fs::lchown(&data, Some(0), None).unwrap();
    set(&path, 0o604);
    assert!(refusal(&key).unwrap().contains(path.to_str().unwrap()), "{:?}", refusal(&key));
    let circle = root.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(matches!(check_secret(&circle, &Trusted::own()), Err(Exposure::Io { .. })));
    assert_eq!(refusal(&root.path().join("none/at/all")), None, "nothing is there");
}

#[test]
fn another_services_user_may_own_its_state() {
    let (_root, path) = secret(0o640);
    let dir = path.parent().unwrap();
    for path in [dir, &path] {
        chown(path, Some(12345), Some(12345)).unwrap();
    }
    assert!(refusal(&path).is_some());
    let mut service = User { uid: 12345, gids: vec![12345] };
    assert!(check_secret(&path, &Trusted::of(&service)).is_ok());
    service.gids.clear();
    let refusal = check_secret(&path, &Trusted::of(&service)).unwrap_err().to_string();
    assert!(refusal.contains("is open to group 12345"), "its directory's group is not its own: {refusal}");
}

#[test]
fn advice_names_only_a_user_that_is_known() {
    let (_root, path) = secret(0o600);
    chown(&path, Some(12345), None).unwrap();
    let service = Trusted::of(&User { uid: 990, gids: vec![] });
    for (trusted, words) in [
        (Trusted::own(), "`chown 0 "),
        (service.clone(), "`chown 990 "),
        (Trusted::own().without_advice(), "give it to the user who works with it"),
        (Trusted::own().and(&service), "give it to the user who works with it"),
        (Trusted::own().and(&Trusted::own()), "`chown 0 "),
    ] {
        let refusal = check_secret(&path, &trusted).unwrap_err().to_string();
        assert!(refusal.contains(words), "{words} is not in {refusal}");
    }
}

#[test]
fn a_file_may_be_read_and_not_written() {
    let (root, path) = secret(0o644);
    let refusal = || check_file(&path, &Trusted::own()).err().map(|error| error.to_string());
    assert_eq!(refusal(), None);
    set(&path, 0o666);
    assert!(refusal().unwrap().contains("can be written by every user of this host: `chmod o-w "));
    set(&path, 0o644);
    chown(&path, Some(12345), None).unwrap();
    assert!(refusal().unwrap().contains("belongs to uid 12345"));
    chown(&path, Some(0), None).unwrap();
    set(path.parent().unwrap(), 0o777);
    assert!(refusal().unwrap().contains("can be written by every user"), "the directory counts");
    set(path.parent().unwrap(), 0o755);
    set(root.path(), 0o1777);
    assert_eq!(refusal(), None, "a sticky directory on the way is as `/tmp` is");
    assert!(check_file(root.path(), &Trusted::own()).is_err(), "a directory is not a file");
    assert!(check_file(&root.path().join("none"), &Trusted::own()).is_ok());
}

/// Before it is read-only, the same directory is the control.
#[test]
fn a_read_only_mount_may_have_any_owner() {
    use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
    let (root, path) = secret(0o666);
    let dir = path.parent().unwrap();
    for path in [dir, &path] {
        chown(path, Some(12345), Some(12345)).unwrap();
    }
    let place = root.path().join("mounted");
    fs::create_dir(&place).unwrap();
    mount_bind(dir, &place).expect("this test mounts and must run as root");
    let refusal = || check_file(&place.join("secret"), &Trusted::own()).err().map(|error| error.to_string());
    let writable = refusal();
    mount_remount(&place, MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
    let read_only = refusal();
    set(root.path(), 0o777);
    let above = refusal();
    unmount(&place, UnmountFlags::DETACH).unwrap();
    assert!(writable.clone().unwrap().contains("belongs to uid 12345"), "{writable:?}");
    assert_eq!(read_only, None);
    assert!(above.unwrap().contains("can be written by every user"), "what is above the mount counts");
}
