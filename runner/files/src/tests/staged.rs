//! Tests stages: they are whole or not there, survive any names and contents, and fill a hostile workspace safely.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;
use crate::{Error, Unreadable};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_agent_gets_the_files_as_its_own() {
    let fixture = Fixture::with(&[("src/main.rs", "fn main() {}"), ("run.sh", "#!/bin/sh")]);
    set_mode(&fixture.source().join("run.sh"), 0o6755);
    set_mode(&fixture.source().join("src/main.rs"), 0o600);
    fs::create_dir(fixture.source().join("empty")).unwrap();
    let mut reported = Vec::new();
    let selection = fixture.select(&CopyRules::default()).unwrap();
    let staged =
        Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |done| reported.push(done))
            .unwrap();
    let last = reported.last().unwrap();
    assert_eq!((last.files, last.bytes), (last.all_files, last.all_bytes));
    let stage = Stage::open(&fixture.stages(), &fixture.run_id).unwrap();
    assert_eq!(stage.staged_files(), staged);
    stage.unpack(&fixture.tree()).unwrap();
    for (path, mode) in
        [("", 0o755), ("src", 0o755), ("empty", 0o755), ("run.sh", 0o755), ("src/main.rs", 0o644)]
    {
        let found = fs::metadata(fixture.repo().join(path)).unwrap();
        assert_eq!(
            (found.permissions().mode() & 0o7777, found.uid(), found.gid()),
            (mode, 1001, 1001),
            "{path}"
        );
    }
    for file in ["manifest.json", "data"] {
        let mode = fs::metadata(fixture.stages().join("run-1").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(fs::metadata(fixture.stages()).unwrap().permissions().mode() & 0o777, 0o700);
    let early = fixture.dir.path().join("workspaces");
    Stage::write(&stages_dir(&early), &fixture.run_id, &selection, &mut |_| {}).unwrap();
    assert_eq!(fs::metadata(early).unwrap().permissions().mode() & 0o777, 0o700, "as workspaces need it");
}

#[test]
fn a_run_has_one_stage() {
    let fixture = Fixture::with(&[("a", "one")]);
    let staged = || {
        let selection = fixture.select(&CopyRules::default()).unwrap();
        Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |_| {})
    };
    let first = staged().unwrap();
    assert_eq!(staged().unwrap(), first, "the same files again");
    fixture.write("a", "two");
    assert!(matches!(staged(), Err(Error::OtherFiles { .. })));
    assert_eq!(names(&fixture.stages()), ["run-1"], "nothing unfinished stays");
    assert_eq!(Stage::list(&fixture.stages()).unwrap().len(), 1);
    Stage::remove(&fixture.stages(), &fixture.run_id).unwrap();
    Stage::remove(&fixture.stages(), &fixture.run_id).unwrap();
    assert!(matches!(Stage::open(&fixture.stages(), &fixture.run_id), Err(Error::NoFiles { .. })));
    assert_eq!(Stage::list(Path::new("/nowhere")).unwrap(), []);
}

#[test]
fn abandoned_unfinished_stages_are_removed() {
    let fixture = Fixture::with(&[("a", "")]);
    fixture.start_run();
    let dir = fixture.stages().join(".unfinished-1");
    fs::create_dir(&dir).unwrap();
    let writer = platform_runtime::lock::Lock::attempt(&dir).unwrap();
    Stage::remove_unfinished(&fixture.stages()).unwrap();
    assert_eq!(names(&fixture.stages()), [".unfinished-1", "run-1"], "control: it is in use");
    drop(writer);
    Stage::remove_unfinished(&fixture.stages()).unwrap();
    assert_eq!(names(&fixture.stages()), ["run-1"]);
    fs::create_dir(&dir).unwrap();
    let selection = fixture.select(&CopyRules::default()).unwrap();
    Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |_| {}).unwrap();
    assert_eq!(names(&fixture.stages()), ["run-1"], "the next copy removes it as well");
}

#[test]
fn copies_at_once_take_nothing_from_each_other() {
    let fixture = Fixture::with(&[("a", "one")]);
    let selection = fixture.select(&CopyRules::default()).unwrap();
    let write = |run: String| {
        Stage::write(&fixture.stages(), &run.parse().unwrap(), &selection, &mut |_| {}).unwrap();
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || (0..100).for_each(|copy| write(format!("run-{thread}-{copy}"))));
        }
    });
    assert_eq!(Stage::list(&fixture.stages()).unwrap().len(), 800);
}

#[test]
fn a_file_that_changes_is_named() {
    for change in ["grows", "same size"] {
        let fixture = Fixture::with(&[("a", "first"), ("b", &"x".repeat(1 << 20)), ("c", "last")]);
        let selection = fixture.select(&CopyRules::default()).unwrap();
        let written = Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |done| {
            // While the copy goes on, a program writes to a file it has not reached.
            if done.files == 1 && change == "grows" {
                fixture.write("c", "longer than before");
            }
        });
        match change {
            "grows" => {
                let Err(Error::SourceFile { path: changed, why: Unreadable::Changed, .. }) = &written else {
                    panic!("{written:?}")
                };
                assert_eq!(*changed, path("c"));
                assert_eq!(names(&fixture.stages()), [""; 0], "nothing is half-copied");
            }
            _ => assert!(written.is_ok(), "control: {written:?}"),
        }
    }
}

#[test]
fn a_file_written_while_read_is_changed() {
    let fixture = Fixture::with(&[("a", "0123456789")]);
    let root = crate::TreeRoot::open(&fixture.source()).unwrap();
    let read = |meanwhile: &dyn Fn()| {
        let mut file = root.open_file(Path::new("a")).unwrap();
        let mut piece = [0; 4];
        file.read_piece(&mut piece).unwrap();
        meanwhile();
        while file.read_piece(&mut piece)? > 0 {}
        Ok(())
    };
    assert_eq!(read(&|| {}), Ok(()), "control");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(read(&|| fixture.write("a", "9876543210")), Err(Unreadable::Changed), "the same size");
    assert_eq!(read(&|| fixture.write("a", "short")), Err(Unreadable::Changed));
    assert_eq!(read(&|| fixture.write("a", "much longer than before")), Err(Unreadable::Changed));
}

#[test]
fn damage_of_a_stage_is_seen() {
    let fixture = Fixture::with(&[("a", "content")]);
    fixture.start_run();
    fs::remove_dir_all(fixture.repo()).unwrap();
    let unpack = || Stage::open(&fixture.stages(), &fixture.run_id)?.unpack(&fixture.tree());
    fs::write(fixture.stages().join("run-1/data"), "CONTENT").unwrap();
    assert!(matches!(unpack(), Err(Error::Damaged { .. })));
    fs::remove_dir_all(fixture.repo()).unwrap();
    fs::write(fixture.stages().join("run-1/data"), "content").unwrap();
    unpack().unwrap();
    let manifest = fixture.stages().join("run-1/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for other in [text.replace("\"a\"", "\"../a\""), text.replace("\"a\"", "\"d/a\""), "{}".to_owned()] {
        assert_ne!(other, text);
        fs::write(&manifest, other).unwrap();
        assert!(matches!(unpack(), Err(Error::Damaged { .. })));
    }
}

#[test]
fn an_entry_in_the_way_stops_unpacking() {
    let fixture = Fixture::with(&[("a", "content")]);
    let stage = fixture.start_run();
    assert!(stage.unpack(&fixture.tree()).is_err(), "a directory is there already");
    fs::remove_dir_all(fixture.repo()).unwrap();
    let outside = fixture.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    link("../outside", fixture.repo());
    assert!(stage.unpack(&fixture.tree()).is_err(), "an agent's link is not followed");
    assert_eq!(names(&outside), [""; 0]);
    fs::remove_file(fixture.repo()).unwrap();
    stage.unpack(&fixture.tree()).unwrap();
}

#[test]
fn many_small_files_are_fast() {
    let fixture = Fixture::new();
    for file in 0..20_000 {
        let dir = fixture.source().join(format!("d{}", file / 100));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file.to_string()), "a small file").unwrap();
    }
    let began = Instant::now();
    let selection = fixture.select(&CopyRules::default()).unwrap();
    Stage::write(&fixture.stages(), &fixture.run_id, &selection, &mut |_| {}).unwrap();
    let staged = began.elapsed();
    let stage = Stage::open(&fixture.stages(), &fixture.run_id).unwrap();
    let began = Instant::now();
    stage.unpack(&fixture.tree()).unwrap();
    println!("20,000 files: staged in {staged:?}, unpacked in {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// Entry of a random tree.
#[derive(Debug, Clone)]
enum RandomEntry {
    File(Vec<u8>, u32),
    Link(String),
    Directory,
}

fn random_entry() -> impl Strategy<Value = RandomEntry> {
    prop_oneof![
        (prop::collection::vec(any::<u8>(), 0..200), prop_oneof![Just(0o644), Just(0o755)])
            .prop_map(|(content, mode)| RandomEntry::File(content, mode)),
        "[a-z./]{1,20}".prop_map(RandomEntry::Link),
        Just(RandomEntry::Directory),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_tree_comes_back_unchanged(
        entries in prop::collection::vec((prop::collection::vec("[a-cäß\n\u{202e}\"\\\\ ]{1,3}", 1..4), random_entry()), 0..20)
    ) {
        let fixture = Fixture::new();
        for (names, entry) in entries {
            let path = fixture.source().join(names.join("/"));
            if fs::create_dir_all(path.parent().unwrap()).is_err() || path.symlink_metadata().is_ok() {
                continue;
            }
            match entry {
                RandomEntry::File(content, mode) => {
                    fs::write(&path, content).unwrap();
                    set_mode(&path, mode);
                }
                RandomEntry::Link(target) => link(&target, path),
                RandomEntry::Directory => fs::create_dir(&path).unwrap(),
            }
        }
        let stage = fixture.start_run();
        let result = fixture.result(&stage);
        let changes = Changes::between(&stage, &result).unwrap();
        prop_assert_eq!(changes.all(), &[]);
        prop_assert_eq!(changes.unreadable(), &[]);
        prop_assert_eq!(result.entries().count(), stage.manifest().entries().len());
    }
}

#[test]
fn a_copy_leaves_the_reserve_of_the_disk() {
    let fixture = Fixture::with(&[("a", "a")]);
    let selection = fixture.select(&CopyRules::default()).unwrap();
    let check = |reserve| selection.check_room(&fixture.stages(), platform_core::limit::ByteSize(reserve));
    assert!(matches!(check(u64::MAX), Err(crate::Error::NoRoom { .. })));
    check(0).expect("the control");
}

#[test]
fn the_space_of_a_stage_is_measured() {
    let fixture = Fixture::with(&[("a", &"a".repeat(100_000))]);
    let usage = || Stage::disk_usage(&fixture.stages(), &fixture.run_id).unwrap().0;
    assert_eq!(usage(), 0, "there is none yet");
    fixture.start_run();
    assert!(usage() >= 100_000, "{}", usage());
}
