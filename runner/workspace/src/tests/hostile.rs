//! Tests traps that agents leave for a process that reads or removes a workspace. Each trap first catches a plain
//! attempt.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use platform_core::limit::ByteSize;
use platform_runtime::settings::{Sandbox, WorkspaceForm};
use runner_files::{TreeRoot, Unreadable};
use rustix::{
    fs::{CWD, Mode, OFlags},
    process::{Resource, getrlimit, setrlimit},
};

use super::{super::InitialContent, BOTH, Fixture, entries, settings};

const MOST: ByteSize = ByteSize::kib(64);
const SECRET: &str = "the host's own";

fn read(fixture: &Fixture, relative: &Path, max_size: ByteSize) -> Result<Vec<u8>, Unreadable> {
    TreeRoot::open(fixture.tree()).unwrap().read_file(relative, max_size)
}

fn unreadable_reason(read: Result<Vec<u8>, Unreadable>) -> Unreadable {
    read.unwrap_err()
}

#[tokio::test]
async fn only_plain_files_beneath_it_are_read() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        let secret = fixture.root.join("secret");
        fs::write(&secret, SECRET).unwrap();
        fs::create_dir(tree.join("d")).unwrap();
        fs::write(tree.join("d/file"), "fine").unwrap();
        assert_eq!(read(&fixture, Path::new("d/file"), MOST).unwrap(), b"fine", "{form:?}");
        let odd = Path::new(OsStr::from_bytes(b"d/\xff\n"));
        fs::write(tree.join(odd), "odd").unwrap();
        assert_eq!(read(&fixture, odd, MOST).unwrap(), b"odd", "{form:?}");

        symlink(&secret, tree.join("absolute")).unwrap();
        symlink("../../secret", tree.join("relative")).unwrap();
        symlink(&fixture.root, tree.join("out")).unwrap();
        symlink("d", tree.join("inside")).unwrap();
        symlink("/proc/self/fd/0", tree.join("magic")).unwrap();
        for (path, plainly) in [
            ("absolute", true),
            ("relative", true),
            ("out/secret", true),
            ("inside/file", true),
            ("../../secret", true),
            ("d/../../../secret", true),
            ("magic", false),
        ] {
            let found = unreadable_reason(read(&fixture, Path::new(path), MOST));
            assert_eq!(found, Unreadable::Elsewhere, "{form:?} {path}");
            // Control: they all lead somewhere.
            assert!(!plainly || fs::read(tree.join(path)).is_ok(), "{form:?} {path}");
        }
        assert_eq!(
            unreadable_reason(read(&fixture, &secret, MOST)),
            Unreadable::Elsewhere,
            "an absolute path"
        );
        assert_eq!(fs::read_to_string(tree.join("relative")).unwrap(), SECRET, "control");
        assert_eq!(unreadable_reason(read(&fixture, Path::new("d/none"), MOST)), Unreadable::Missing);
        assert_eq!(unreadable_reason(read(&fixture, Path::new("d/file/x"), MOST)), Unreadable::Missing);
        fs::remove_file(secret).unwrap();
        fixture.remove().await;
    }
}

#[tokio::test]
async fn special_and_linked_files_are_not_read() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let tree = fixture.tree();
        fs::create_dir(tree.join("d")).unwrap();
        let socket = UnixListener::bind(tree.join("socket")).unwrap();
        rustix::fs::mknodat(
            CWD,
            tree.join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        for name in ["d", "socket", "pipe", "."] {
            assert_eq!(
                unreadable_reason(read(&fixture, Path::new(name), MOST)),
                Unreadable::NotAFile,
                "{form:?} {name}"
            );
        }
        // Control: a plain read of the pipe waits for a writer.
        let pipe = tree.join("pipe");
        let plainly = std::thread::spawn(move || fs::read(pipe));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!plainly.is_finished(), "control: it hangs");
        fs::write(tree.join("pipe"), "free").unwrap();
        assert_eq!(plainly.join().unwrap().unwrap(), b"free");

        let messages = Path::new(".cogni/messages.json");
        assert!(read(&fixture, messages, MOST).is_ok());
        fs::hard_link(tree.join(messages), tree.join("result.json")).unwrap();
        for name in ["result.json", ".cogni/messages.json"] {
            let linked = Unreadable::Linked { names: 2 };
            assert_eq!(unreadable_reason(read(&fixture, Path::new(name), MOST)), linked, "{form:?} {name}");
            assert!(fs::read(tree.join(name)).is_ok(), "control");
        }
        drop(socket);
        fixture.remove().await;
    }
}

#[tokio::test]
async fn a_growing_file_is_read_up_to_its_limit() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let read = |most| self::read(&fixture, Path::new("file"), ByteSize(most));
        fs::write(fixture.tree().join("file"), [7; 1000]).unwrap();
        assert_eq!(read(1000).unwrap().len(), 1000);
        assert_eq!(unreadable_reason(read(999)), Unreadable::TooLarge { max_size: ByteSize(999) });
        // Larger than memory, and uses no disk space.
        let sparse = fs::File::create(fixture.tree().join("file")).unwrap();
        sparse.set_len(60 << 30).unwrap();
        drop(sparse);
        assert_eq!(unreadable_reason(read(1000)), Unreadable::TooLarge { max_size: ByteSize(1000) });

        let path = fixture.tree().join("file");
        fs::write(&path, "").unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    file.write_all(&[7; 100]).unwrap();
                    if file.metadata().unwrap().len() > 1 << 20 {
                        file.set_len(0).unwrap();
                    }
                }
            });
            let (mut whole, mut refused) = (0, 0);
            while whole < 20 || refused < 20 {
                match read(4000) {
                    Ok(content) => whole += u32::from(content.len() <= 4000),
                    Err(error) => {
                        refused += u32::from(
                            unreadable_reason(Err(error))
                                == Unreadable::TooLarge { max_size: ByteSize(4000) },
                        )
                    }
                }
                if whole < refused {
                    fs::File::create(&path).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        fixture.remove().await;
    }
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_is_no_way_out() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let (tree, secrets) = (fixture.tree(), fixture.root.join("secrets"));
        fs::create_dir(&secrets).unwrap();
        fs::write(secrets.join("file"), SECRET).unwrap();
        fs::create_dir(tree.join("d")).unwrap();
        fs::write(tree.join("d/file"), "the agent's").unwrap();
        symlink(&secrets, tree.join("link")).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (tree.join("d"), tree.join("link"));
                while !stop.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(CWD, &one, CWD, &other, rustix::fs::RenameFlags::EXCHANGE)
                        .unwrap();
                }
            });
            let (mut own, mut refused, mut betrayed) = (0, 0, 0);
            // On a busy machine the control takes longer to be betrayed.
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut attempts = 0;
            while attempts < 20_000 || (own.min(refused).min(betrayed) == 0 && Instant::now() < deadline) {
                attempts += 1;
                match read(&fixture, Path::new("d/file"), MOST) {
                    Ok(content) => {
                        assert_eq!(content, b"the agent's");
                        own += 1;
                    }
                    Err(error) => {
                        assert_eq!(unreadable_reason(Err(error)), Unreadable::Elsewhere);
                        refused += 1;
                    }
                }
                // Control: a check of the file type, then a plain read.
                let path = tree.join("d/file");
                let looks_right = fs::symlink_metadata(tree.join("d")).is_ok_and(|found| found.is_dir());
                if looks_right && fs::read(&path).is_ok_and(|content| content == SECRET.as_bytes()) {
                    betrayed += 1;
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(
                own > 0 && refused > 0 && betrayed > 0,
                "{form:?}: {own} own, {refused} refused, {betrayed} betrayed"
            );
        });
        fs::remove_dir_all(secrets).unwrap();
        fixture.remove().await;
    }
}

/// Creates nested directories, more deeply than a path can name.
fn nest(tree: &Path, depth: usize) {
    let open =
        |at, name: &Path| rustix::fs::openat(at, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
    let mut at = open(CWD, tree).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o755)).unwrap();
        at = rustix::fs::openat(&at, "d", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[tokio::test]
async fn a_tree_that_is_deep_is_removed() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        nest(fixture.tree(), 4000);
        // Control: with as many descriptors as there often are, the plain way ends half-way.
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(1024), ..before }).unwrap();
        let plainly = fs::remove_dir_all(fixture.tree().join("d"));
        setrlimit(Resource::Nofile, before).unwrap();
        assert!(plainly.is_err(), "control: {form:?}");
        fixture.remove().await;
    }
}

#[tokio::test]
async fn a_tree_of_many_files_is_removed() {
    for form in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let roomy = Sandbox {
            workspace_size: ByteSize::mib(256),
            max_workspace_files: Some(30_000),
            ..settings(dir.path(), form)
        };
        let fixture = Fixture::with(roomy, dir).await;
        for directory in 0..20 {
            let directory = fixture.tree().join(directory.to_string());
            fs::create_dir(&directory).unwrap();
            for file in 0..1000 {
                fs::write(directory.join(file.to_string()), "x").unwrap();
            }
        }
        fixture.remove().await;
    }
}

#[tokio::test]
async fn a_tree_of_traps_is_removed_and_nothing_else() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        let (tree, precious) = (fixture.tree(), fixture.root.join("precious"));
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), SECRET).unwrap();
        symlink(&precious, tree.join("link")).unwrap();
        symlink("/etc/shadow", tree.join("shadow")).unwrap();
        symlink(".", tree.join("loop")).unwrap();
        let socket = UnixListener::bind(tree.join("socket")).unwrap();
        rustix::fs::mknodat(
            CWD,
            tree.join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        for name in [&b"-rf"[..], b"\xff\xfe", b"new\nline", &[b'x'; 255]] {
            fs::create_dir_all(tree.join(OsStr::from_bytes(name)).join("below")).unwrap();
        }
        fs::create_dir_all(tree.join("closed/closed")).unwrap();
        for closed in ["closed/closed", "closed", ""] {
            fs::set_permissions(tree.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Control: a removal that follows links would reach foreign files.
        assert!(fs::read_dir(tree.join("link")).unwrap().count() == 1 && fs::metadata("/etc/shadow").is_ok());
        drop(socket);
        fixture.all.remove(&fixture.id).await.unwrap();
        assert_eq!(entries(&fixture.root), ["precious"]);
        assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), SECRET);
        assert!(fs::metadata("/etc/shadow").unwrap().size() > 0);
        fs::remove_dir_all(precious).unwrap();
        fixture.assert_gone();
        fixture.without_devices().await;
    }
}

#[tokio::test]
async fn a_reused_name_is_another_workspace() {
    for form in BOTH {
        let fixture = Fixture::of(form).await;
        fs::write(fixture.tree().join("left"), "").unwrap();
        fixture.all.remove(&fixture.id).await.unwrap();
        let again = fixture.all.create(&fixture.id, InitialContent::default()).await.unwrap();
        assert_eq!((again.path(), entries(again.path())), (fixture.tree(), vec![".cogni".to_owned()]));
        fixture.remove().await;
    }
}

#[tokio::test]
async fn devices_and_set_uid_have_no_effect_in_images() {
    let fixture = Fixture::of(WorkspaceForm::Image).await;
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(fixture.tree().to_str().unwrap())).unwrap();
    for option in ["nosuid", "nodev", "noatime", "errors=remount-ro"] {
        assert!(line.contains(option), "{line}");
    }
    fixture.remove().await;
}
