//! Tests that a run begins with the files of a directory, and that its workspace stays to be read.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Outcome, Up, World, eventually, eventually::eventually_within};
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::Signal,
};
use serde_json::json;

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, record},
    sandbox::shell_agent,
};

/// Script that shows where it is and what it finds, and changes it.
const EDITS: &str =
    "pwd; ls -A; cat a.txt; ./run.sh; readlink link; echo changed > a.txt; echo new > sub/new.txt";
/// Script that executes its question.
const OBEYS: &str = r#"eval "$(cat /workspace/.cogni/prompt.txt)""#;
/// Output of [`EDITS`] in a copy of [`project`].
const SEEN: &str = "/workspace/repo\n.gitignore\na.txt\nlink\nrun.sh\nsub\ntext\nran\nsub/deep.txt";

/// Makes a directory with a file of each kind in `world`.
fn project(world: &World) -> PathBuf {
    let dir = world.path().join("project");
    fs::create_dir_all(dir.join("sub")).unwrap();
    fs::create_dir_all(dir.join(".git")).unwrap();
    for (name, content) in [
        ("a.txt", "text\n"),
        ("run.sh", "#!/bin/sh\necho ran\n"),
        ("sub/deep.txt", "deep\n"),
        (".gitignore", "*.log\n"),
        ("noise.log", "noise\n"),
        (".env", "PASSWORD=x\n"),
        (".git/config", "[core]\n"),
    ] {
        fs::write(dir.join(name), content).unwrap();
    }
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("sub/deep.txt", dir.join("link")).unwrap();
    dir
}

/// Runs the world's shell agent as `run` with the files of `dir`.
async fn run_with(world: &World, run: &str, dir: &Path) -> Outcome {
    let dir = dir.to_str().unwrap();
    world.sluice().run(&["run", "--agent", "test:sh", "--run-id", run, "--workspace", dir, "q"]).await
}

/// Submits `run` with the files of `dir` to `sluice up`.
async fn submit_with(world: &World, run: &str, dir: &Path) {
    let dir = dir.to_str().unwrap();
    let arguments = ["run", "--detach", "--agent", "test:sh", "--run-id", run, "--workspace", dir, "q"];
    let outcome = world.sluice().run(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

fn stage(world: &World, run: &str) -> PathBuf {
    world.path().join("workspaces/.files").join(run)
}

async fn gc(world: &World, options: &[&str]) {
    let outcome = world.sluice().run(&[&["runs", "gc"], options].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[tokio::test]
async fn a_run_starts_in_a_copy_of_a_directory() {
    let world = World::with(&shell_agent(EDITS, "")).await;
    let dir = project(&world);
    let outcome = run_with(&world, "r1", &dir).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), SEEN), "{outcome:?}");
    for said in [
        "copying 5 files, ",
        "left out 1 file that may hold secrets: .env",
        "without .git: the agent sees no history",
        "sluice runs diff r1",
    ] {
        assert!(outcome.stderr.contains(said), "{said:?} is not in {}", outcome.stderr);
    }
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "text\n", "the directory is untouched");
    let repo = world.workspace("r1").await.join("repo");
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "changed\n", "the result stays");
    gc(&world, &[]).await;
    assert!(repo.exists() && stage(&world, "r1").exists(), "gc leaves what is kept");
    gc(&world, &["--kept"]).await;
    assert!(!repo.exists() && !stage(&world, "r1").exists(), "both go together");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn includes_and_all_copy_what_is_left_out() {
    let world = World::with(&shell_agent("ls -A", "")).await;
    let dir = project(&world);
    let dir = dir.to_str().unwrap();
    let options = ["--workspace", dir, "--all", "--include", ".env", "q"];
    let outcome =
        world.sluice().run(&[&["run", "--agent", "test:sh", "--run-id", "r1"], &options[..]].concat()).await;
    let names = ".env\n.gitignore\na.txt\nlink\nnoise.log\nrun.sh\nsub";
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), names), "{outcome:?}");
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_clone_has_history_and_nothing_else() {
    const LOOKS: &str = "git log --format=%s; git remote; ls .git/hooks; git config --get alias.evil; cat a.txt; git status --short";
    let world = World::with(&shell_agent(LOOKS, "")).await;
    let dir = project(&world);
    fs::remove_dir_all(dir.join(".git")).unwrap();
    for arguments in [
        &["init", "--quiet"][..],
        &["remote", "add", "origin", "https://host.invalid/x"],
        &["config", "alias.evil", "!touch /tmp/evil"],
        &["add", "a.txt", "sub", ".env"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"],
    ] {
        let status = Command::new("git").arg("-C").arg(&dir).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }
    fs::write(dir.join(".git/hooks/post-checkout"), "#!/bin/sh\ntouch /tmp/evil\n").unwrap();
    fs::set_permissions(dir.join(".git/hooks/post-checkout"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("a.txt"), "uncommitted\n").unwrap();
    let dir = dir.to_str().unwrap();
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "--workspace", dir, "--git", "q"];
    let outcome = world.sluice().run(&arguments).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "first\ntext"), "{outcome:?}");
    for said in ["uncommitted changes", "WARNING: the agent receives 1 file that may hold secrets", ".env"] {
        assert!(outcome.stderr.contains(said), "{said:?} is not in {}", outcome.stderr);
    }
    assert!(!Path::new("/tmp/evil").exists(), "no hook ran on the host");
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

/// An agent that works on stand-ins would do so without anyone's knowledge.
#[tokio::test]
async fn a_clone_says_what_it_lacks() {
    let world = World::with(&shell_agent("cat big.bin | head -n 1; ls -A lib", "")).await;
    let clone = async |run: &str, dir: &Path| {
        let dir = dir.to_str().unwrap();
        let arguments = ["run", "--agent", "test:sh", "--run-id", run, "--workspace", dir, "--git", "q"];
        world.sluice().run(&arguments).await
    };
    let lacking = ["1 submodule without files", "1 file of Git LFS without content"];
    let dir = world.path().join("clone");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("big.bin"), "text\n").unwrap();
    fs::create_dir(dir.join("lib")).unwrap();
    fs::write(dir.join("lib/a"), "").unwrap();
    commit_all(&dir);
    let whole = clone("whole", &dir).await;
    assert_eq!((whole.code, whole.stdout.trim()), (Some(0), "text\na"), "{whole:?}");
    let said = lacking.iter().chain([&"without .git"]);
    assert!(said.into_iter().all(|said| !whole.stderr.contains(said)), "control: {whole:?}");

    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 7\n", "a".repeat(64));
    fs::write(dir.join("big.bin"), pointer).unwrap();
    fs::write(dir.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n").unwrap();
    fs::write(
        dir.join(".gitmodules"),
        "[submodule \"lib\"]\n\tpath = lib\n\turl = https://host.invalid/lib\n",
    )
    .unwrap();
    commit_all(&dir);
    let parts = clone("parts", &dir).await;
    assert_eq!(parts.code, Some(0), "{parts:?}");
    for said in lacking {
        assert!(parts.stderr.contains(said), "{said:?} is not in {parts:?}");
    }
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

/// Commits everything in `dir`, which becomes a repository unless it is one.
fn commit_all(dir: &Path) {
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "files"],
    ] {
        let status = Command::new("git").arg("-C").arg(dir).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }
}

/// `sluice runs diff` does not have it, so the end of the run names it.
#[tokio::test]
async fn a_file_beside_the_repository_is_named() {
    let world = World::with(&shell_agent(OBEYS, "")).await;
    let dir = project(&world);
    let dir = dir.to_str().unwrap();
    let ran = async |run: &str, script: &str, options: &[&str]| {
        let arguments = ["run", "--agent", "test:sh", "--run-id", run, "--workspace", dir];
        world.sluice().run(&[&arguments, options, &[script]].concat()).await
    };
    let said = "left: 1 file outside repo (NOTES.md): ";
    let beside = "echo done | tee ../NOTES.md";
    let outcome = ran("beside", beside, &[]).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "done"), "{outcome:?}");
    assert!(outcome.stderr.contains(said), "{outcome:?}");
    let result = ran("json", beside, &["--json"]).await.result();
    assert_eq!(result["outside"], json!({ "files": 1, "names": ["NOTES.md"] }), "{result}");
    let waited = world.sluice().run(&["runs", "wait", "beside"]).await;
    assert!(waited.stderr.contains(said), "{waited:?}");
    let inside = ran("inside", "echo done | tee NOTES.md", &[]).await;
    assert!(inside.code == Some(0) && !inside.stderr.contains("outside repo"), "control: {inside:?}");
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

/// The files reach a container that runs already before its agent starts.
#[tokio::test]
async fn a_warm_run_receives_files() {
    let settings = "disk = '64MiB'\nwarm_pool_size = 1\n";
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(EDITS, settings))).await;
    assert!(world.stop_proxy().await);
    let dir = project(&world);
    let up = Up::start(world.sluice()).await;
    let waiting = async || world.sluice().run(&["runs", "gc", "--dry-run"]).await.stdout;
    eventually_within(PATIENCE, "one waits", waiting, |text| text.contains("it waits for a run")).await;
    submit_with(&world, "r1", &dir).await;
    let record = ended(&world, "r1").await;
    assert_eq!(record["answer"], SEEN, "{record:#}");
    assert!(record["resources"].to_string().contains("-warm-"), "{record:#}");
    gc(&world, &["--kept"]).await;
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// The next worker makes the workspace anew, from the same copy.
#[tokio::test]
async fn files_outlive_the_worker() {
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(EDITS, ""))).await;
    assert!(world.stop_proxy().await);
    let dir = project(&world);
    for point in ["prepared", "workspace-made", "registered", "run-stored"] {
        let run = format!("r-{point}");
        let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", &format!("{point}:kill"))).await;
        submit_with(&world, &run, &dir).await;
        up.child.wait().await.unwrap();
        let next = Up::start(world.sluice()).await;
        let record = ended(&world, &run).await;
        assert_eq!(record["answer"], SEEN, "{point}: {record:#}");
        gc(&world, &["--kept"]).await;
        next.stop(Signal::TERM).await;
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(),
            Signal::KILL,
        )
        .ok();
    }
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_kept_workspace_goes_when_its_time_is_over() {
    let world = World::with(&shell_agent("true", "keep = '5s'\n")).await;
    let outcome = run_with(&world, "r1", &project(&world)).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    gc(&world, &[]).await;
    assert!(stage(&world, "r1").exists(), "control: its time is not over");
    let collect = || async {
        gc(&world, &[]).await;
        stage(&world, "r1").exists()
    };
    eventually("its time is over", collect, |exists| !exists).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn files_of_a_run_that_never_began_are_removed() {
    let world = World::with(&shell_agent("true", "")).await;
    let dir = project(&world);
    submit_with(&world, "r1", &dir).await;
    gc(&world, &[]).await;
    assert!(stage(&world, "r1").exists(), "control: the run waits");
    assert_eq!(world.sluice().run(&["runs", "cancel", "r1"]).await.code, Some(0));
    assert_eq!(record(&world, "r1").await["state"], "cancelled");
    gc(&world, &[]).await;
    assert!(!stage(&world, "r1").exists());
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn directories_that_cannot_be_copied_are_refused() {
    let world = World::with(&shell_agent("true", "")).await;
    let project = project(&world);
    let pipes = world.path().join("pipes");
    fs::create_dir(&pipes).unwrap();
    mkfifoat(CWD, pipes.join("pipe"), Mode::RUSR).unwrap();
    let sparse = world.path().join("sparse");
    fs::create_dir(&sparse).unwrap();
    File::create(sparse.join("huge")).unwrap().set_len(1 << 40).unwrap();
    for (dir, said) in [
        (pipes, "pipe"),
        (sparse, "huge"),
        (world.path().join("nowhere"), "No such file or directory"),
        (project.join("a.txt"), "not a directory"),
    ] {
        let refused = run_with(&world, "r1", &dir).await;
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{refused:?}");
        assert!(!stage(&world, "r1").exists());
    }
    let accepted = run_with(&world, "r1", &project).await;
    assert_eq!(accepted.code, Some(0), "control: {accepted:?}");
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_repeated_run_id_needs_the_same_files() {
    let world = World::with(&shell_agent("cat a.txt", "")).await;
    let dir = project(&world);
    let first = run_with(&world, "r1", &dir).await;
    let again = run_with(&world, "r1", &dir).await;
    assert_eq!((again.code, &again.stdout), (Some(0), &first.stdout), "{again:?}");
    fs::write(dir.join("a.txt"), "other\n").unwrap();
    let other = run_with(&world, "r1", &dir).await;
    assert!(other.code != Some(0) && other.stderr.contains("other files"), "{other:?}");
    gc(&world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

/// Runs `sluice runs` with `arguments` to its end.
async fn runs(world: &World, arguments: &[&str]) -> Outcome {
    world.sluice().run(&[&["runs"], arguments].concat()).await
}

#[tokio::test]
async fn changes_come_out_and_are_applied() {
    let script =
        format!("{EDITS}; mkdir .github; echo x > .github/ci.yml; rm sub/deep.txt; echo n > noise.log");
    let world = World::with(&shell_agent(&script, "")).await;
    let dir = project(&world);
    assert_eq!(run_with(&world, "run-files-1", &dir).await.code, Some(0));
    let diff = runs(&world, &["diff", "--last", "a.txt"]).await;
    let expected = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-text\n+changed\n";
    assert_eq!((diff.code, diff.stdout.as_str()), (Some(0), expected), "{diff:?}");
    let listed = runs(&world, &["files", "files-1", "--json"]).await.result();
    let changed = |path: &str| {
        let files = listed["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).map(|file| file["change"].clone())
    };
    assert_eq!(changed("sub/new.txt"), Some("added".into()), "{listed:#}");
    assert_eq!((changed("sub/deep.txt"), changed("noise.log")), (Some("deleted".into()), None), "{listed:#}");
    let pulled = world.path().join("pulled");
    let pull = runs(&world, &["pull", "run-files-1", "sub", "--to", pulled.to_str().unwrap()]).await;
    assert_eq!(pull.code, Some(0), "{pull:?}");
    assert_eq!(fs::read_to_string(pulled.join("sub/new.txt")).unwrap(), "new\n");
    let unasked = runs(&world, &["apply", "run-files-1"]).await;
    assert!(unasked.code == Some(2) && unasked.stderr.contains("--yes"), "{unasked:?}");
    let guarded = runs(&world, &["apply", "run-files-1", "--yes"]).await;
    assert!(guarded.code == Some(1) && guarded.stderr.contains(".github/ci.yml"), "{guarded:?}");
    let dry = runs(&world, &["apply", "run-files-1", "a.txt", "--dry-run"]).await;
    assert!(dry.code == Some(0) && dry.stderr.contains("1 new path that .gitignore names"), "{dry:?}");
    fs::write(dir.join("a.txt"), "mine\n").unwrap();
    let conflict = runs(&world, &["apply", "run-files-1", "a.txt", "--yes"]).await;
    assert!(conflict.code == Some(1) && conflict.stderr.contains("a.txt"), "{conflict:?}");
    fs::write(dir.join("a.txt"), "text\n").unwrap();
    assert!(dir.join("sub/deep.txt").exists(), "nothing was applied so far");
    let applied = runs(&world, &["apply", "run-files-1", "--allow", ".github/**", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let read = |path: &str| fs::read_to_string(dir.join(path)).ok();
    assert_eq!((read("a.txt"), read("sub/new.txt")), (Some("changed\n".into()), Some("new\n".into())));
    assert_eq!((read("sub/deep.txt"), read(".github/ci.yml")), (None, Some("x\n".into())));
    assert_eq!(read("noise.log").as_deref(), Some("noise\n"), "what git ignores stays");
    gc(&world, &["--kept"]).await;
    let gone = runs(&world, &["diff", "run-files-1"]).await;
    assert!(gone.code == Some(1), "{gone:?}");
    world.assert_nothing_left().await;
}
