//! Tests `sluice audit verify`: it finds every change to a journal, and nothing where nothing was changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness::{Outcome, World};
use serde_json::Value;

/// A world in which six calls were made, and its journal as files that no proxy writes any more.
struct Stopped {
    world: World,
    copy: PathBuf,
    cursor: PathBuf,
}

async fn stopped() -> Stopped {
    let mut world = World::start().await;
    calls(&world, 6).await;
    let cursor = world.path().join("cursor");
    let report = world.sluice().run(&["audit", "verify", "--json"]).await.result();
    fs::write(&cursor, report["cursor"].to_string()).unwrap();
    assert!(world.stop_proxy().await);
    let copy = copied(&world, "copy");
    Stopped { world, copy, cursor }
}

async fn calls(world: &World, count: usize) {
    let run = world.run("r1", "acct-1").await;
    for _ in 0..count {
        run.agent.chat("fake").await;
    }
    world.records(count).await;
}

/// Copies the journal's files.
fn copied(world: &World, name: &str) -> PathBuf {
    let copy = world.path().join(name);
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(world.journal_file().parent().unwrap()).unwrap().map(|file| file.unwrap()) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
    copy
}

impl Stopped {
    fn file(&self) -> PathBuf {
        self.copy.join("00000000000000000001.ndjson")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.file()).unwrap().lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) {
        fs::write(self.file(), lines.iter().map(|line| line.clone() + "\n").collect::<String>()).unwrap();
    }

    async fn verify(&self, flags: &[&str]) -> Outcome {
        let dir = self.copy.to_str().unwrap();
        self.world.sluice().run(&[&["audit", "verify", "--dir", dir], flags].concat()).await
    }

    async fn verify_with_cursor(&self) -> Outcome {
        self.verify(&["--cursor", self.cursor.to_str().unwrap()]).await
    }
}

fn call(line: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap()["litellm_call_id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn finds(outcome: &Outcome, words: &str) {
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.starts_with("the journal is not whole: "), "{outcome:?}");
    assert!(outcome.stdout.contains(words), "{words} is not in {}", outcome.stdout);
}

#[track_caller]
fn finds_nothing(outcome: &Outcome) {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert!(outcome.stdout.starts_with("the journal is whole: 6 records, 1 to 6\n"), "{}", outcome.stdout);
}

/// Verified with the proxy running and stopped, and later with the cursor that was kept.
#[tokio::test]
async fn an_untouched_journal_verifies() {
    let world = World::start().await;
    calls(&world, 6).await;
    let outcome = world.sluice().run(&["audit", "verify"]).await;
    finds_nothing(&outcome);
    let kept =
        outcome.stdout.lines().last().unwrap().strip_prefix("keep this to check it against: ").unwrap();
    let cursor = world.path().join("cursor");
    fs::write(&cursor, kept).unwrap();
    let run = world.run("r2", "acct-1").await;
    run.agent.chat("fake").await;
    let outcome = world.sluice().run(&["audit", "verify", "--cursor", cursor.to_str().unwrap()]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome.stdout.contains("it agrees with cursor ") && outcome.stdout.contains("(record 6)"),
        "{outcome:?}"
    );

    let stopped = stopped().await;
    finds_nothing(&stopped.verify(&[]).await);
    assert_eq!(stopped.verify_with_cursor().await.code, Some(0));
}

#[tokio::test]
async fn a_journal_in_several_files_is_one() {
    let stopped = stopped().await;
    let lines = stopped.lines();
    stopped.write(&lines[..2]);
    fs::write(stopped.copy.join("00000000000000000003.ndjson"), lines[2..].join("\n") + "\n").unwrap();
    finds_nothing(&stopped.verify(&[]).await);
    fs::remove_file(stopped.file()).unwrap();
    let outcome = stopped.verify(&["--json"]).await;
    let report = outcome.result();
    assert_eq!(
        (outcome.code, &report["first"], &report["records"]),
        (Some(0), &3.into(), &4.into()),
        "{report}"
    );
}

#[tokio::test]
async fn a_changed_byte_is_found_with_its_record() {
    let stopped = stopped().await;
    let mut lines = stopped.lines();
    let call = call(&lines[2]);
    lines[2] = lines[2].replace("\"acct-1\"", "\"acct-2\"");
    stopped.write(&lines);
    finds(&stopped.verify(&[]).await, &format!("record 3 (call {call}) was changed"));
    let fault = &stopped.verify(&["--json"]).await.result()["fault"];
    assert_eq!((&fault["kind"], &fault["seq"], &fault["call"]), (&"changed".into(), &3.into(), &call.into()));
}

#[tokio::test]
async fn missing_doubled_and_moved_lines_are_found() {
    let stopped = stopped().await;
    let whole = stopped.lines();
    let with = async |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        stopped.write(&lines);
        stopped.verify(&[]).await
    };
    let gone = with(&|lines| drop(lines.remove(3))).await;
    let (before, behind) = (call(&whole[2]), call(&whole[4]));
    finds(
        &gone,
        &format!("record 4 is missing: after record 3 (call {before}) comes record 5 (call {behind})"),
    );
    let swapped = with(&|lines| lines.swap(2, 3)).await;
    finds(&swapped, &format!("record 3 (call {}) stands after record 4", call(&whole[2])));
    let doubled = with(&|lines| lines.insert(2, lines[1].clone())).await;
    finds(&doubled, &format!("record 2 (call {}) is there twice", call(&whole[1])));
    let broken = with(&|lines| lines[4] = "{".to_owned()).await;
    finds(&broken, "the line after record 4");
}

#[tokio::test]
async fn a_removed_end_is_found_by_who_kept_the_cursor() {
    let stopped = stopped().await;
    stopped.write(&stopped.lines()[..4]);
    assert_eq!(stopped.verify(&[]).await.code, Some(0), "control: by itself it is whole");
    finds(&stopped.verify_with_cursor().await, "records 5 to 6 are missing at the end");
}

/// A journal that was written anew is consistent in itself; only a cursor that was kept reveals it.
#[tokio::test]
async fn a_rewritten_journal_contradicts_its_cursor() {
    let mut stopped = stopped().await;
    // Written by a real proxy, under the same id.
    let state = stopped.world.journal_file().parent().unwrap().to_owned();
    remove_records(&state);
    stopped.world.start_proxy().await;
    calls(&stopped.world, 6).await;
    assert!(stopped.world.stop_proxy().await);
    stopped.copy = copied(&stopped.world, "anew");
    finds_nothing(&stopped.verify(&[]).await);
    finds(&stopped.verify_with_cursor().await, "is not the one that cursor");
}

/// Removes everything of a journal but its id.
fn remove_records(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name() != "id" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[tokio::test]
async fn an_unusable_cursor_or_directory_is_misuse() {
    let stopped = stopped().await;
    let outcome = stopped.verify(&["--cursor", "/nonexistent"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let outcome = stopped.world.sluice().run(&["audit", "verify", "--dir", "/proc"]).await;
    assert!(outcome.code == Some(2) && outcome.stderr.contains("holds no journal"), "{outcome:?}");
    let outcome = stopped.world.sluice().run(&["audit", "verify"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
}
