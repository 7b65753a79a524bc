//! Tests that the runs of a thread find the same workspace, that no other run does, and that it goes in the end.

use std::{fs, path::PathBuf, time::Duration};

use harness::{GitRemote, Outcome, Up, World, eventually::eventually, pace};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    recovery::survival::{LEASE, ended, let_go, record},
    sandbox::shell_agent,
};

/// Script that executes its question.
const OBEYS: &str = r#"eval "$(cat /workspace/.cogni/prompt.txt)""#;
/// Question that shows the memory and the conversation, and adds to the memory.
const REMEMBERS: &str = "echo \"$(cat /workspace/MEMORY.md 2>&1); $(jq length /workspace/.cogni/messages.json)\"; \
                         echo -n x >> /workspace/MEMORY.md";
/// Output of [`REMEMBERS`] where no run has been.
const NOTHING: &str = "cat: /workspace/MEMORY.md: No such file or directory; 1";
const SETTINGS: &str = "workspace = 'thread'\ndisk = '64MiB'\n";

/// Returns the entry of an agent that executes its question, with more settings.
fn obedient_agent(settings: &str) -> String {
    shell_agent(OBEYS, &format!("{SETTINGS}{settings}"))
}

/// Executes `script` as `run`, with more options.
async fn obey(world: &World, run: &str, options: &[&str], script: &str) -> Outcome {
    world.sluice().run(&[&["run", "--agent", "test:sh", "--run-id", run], options, &[script]].concat()).await
}

/// Executes `script` as `run` of thread `chat`, and returns its output.
async fn turn(world: &World, run: &str, script: &str) -> String {
    let outcome = obey(world, run, &["--state-key", "chat"], script).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout.trim().to_owned()
}

/// Returns the directories of all workspaces.
fn workspaces(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path().join("workspaces")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

async fn gc(world: &World, options: &[&str]) {
    let outcome = world.sluice().run(&[&["runs", "gc"], options].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// Removes all workspaces, and asserts that nothing is left.
async fn end(world: &World) {
    gc(world, &["--kept"]).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_thread_finds_its_memory_and_no_other_does() {
    let other = obedient_agent("").replace("test:sh", "test:other");
    let world = World::with(&format!("{}{other}", obedient_agent(""))).await;
    assert_eq!(turn(&world, "r1", REMEMBERS).await, NOTHING);
    assert_eq!(turn(&world, "r2", REMEMBERS).await, "x; 3", "the memory stays, the conversation is new");
    let strangers = [
        &["--state-key", "Chat"][..],
        &["--state-key", "chat", "--account", "acct-2"],
        &["--state-key", "chat", "--agent", "test:other"],
        &[],
    ];
    for (number, options) in strangers.into_iter().enumerate() {
        let run = format!("s{number}");
        let agent = if options.contains(&"--agent") { &[][..] } else { &["--agent", "test:sh"] };
        let arguments = [&["run", "--run-id", &run], agent, options, &[REMEMBERS]].concat();
        let outcome = world.sluice().run(&arguments).await;
        let nothing = NOTHING.trim_end_matches('1');
        assert!(outcome.stdout.starts_with(nothing), "{options:?}: {outcome:?}");
    }
    assert_eq!(workspaces(&world).len(), 4, "that of the run without a thread is gone");
    // One that failed leaves the workspace, too.
    let failed =
        obey(&world, "r3", &["--state-key", "chat"], "echo -n y >> /workspace/MEMORY.md; exit 3").await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let shown = world.sluice().run(&["runs", "show", "r3"]).await;
    assert!(shown.stdout.contains("thread     chat, whose runs share a workspace"), "{}", shown.stdout);
    gc(&world, &[]).await;
    assert!(turn(&world, "r4", REMEMBERS).await.starts_with("xxy; "));

    for run in ["r1", "r2", "r3", "s2"] {
        assert_eq!(world.sluice().run(&["runs", "forget", run]).await.code, Some(0));
    }
    gc(&world, &[]).await;
    assert_eq!(workspaces(&world).len(), 4, "a turn of the thread is left");
    assert_eq!(world.sluice().run(&["runs", "forget", "r4"]).await.code, Some(0));
    gc(&world, &[]).await;
    assert_eq!(workspaces(&world).len(), 2, "both agents' workspaces go with the thread");
    assert_eq!(turn(&world, "r5", REMEMBERS).await, NOTHING);
    end(&world).await;
}

/// Each link leads to a file of the host, which a plain write would change.
#[tokio::test]
async fn links_left_in_a_thread_harm_nothing() {
    let mut world = World::with(&obedient_agent("")).await;
    world.reconfigure("[sandbox]\n", "[sandbox]\nworkspaces = 'directory'\n");
    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    let host = world.path().join("host");
    fs::create_dir(&host).unwrap();
    let bait = host.join("messages.json");
    fs::write(&bait, "the host's own").unwrap();
    let (host, file) = (host.to_str().unwrap(), bait.to_str().unwrap());
    let plant = format!(
        "cd /workspace; rm .cogni/messages.json; ln -s {file} .cogni/messages.json; ln -s {file} MEMORY.md; \
         ln -s {host} repo; echo planted"
    );
    assert_eq!(turn(&world, "r1", &plant).await, "planted");
    let tree = workspaces(&world)[0].join("tree");
    for link in [".cogni/messages.json", "MEMORY.md", "repo/messages.json"] {
        fs::write(tree.join(link), "followed").unwrap();
        assert_eq!(fs::read_to_string(&bait).unwrap(), "followed", "control: {link}");
        fs::write(&bait, "the host's own").unwrap();
    }
    let project = world.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a.txt"), "text").unwrap();
    let options = ["--state-key", "chat", "--workspace", project.to_str().unwrap()];
    let look = "ls -A; test -f ../.cogni/messages.json && test ! -L ../.cogni/messages.json && echo fresh";
    let outcome = obey(&world, "r2", &options, look).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "a.txt\nfresh"), "{outcome:?}");

    let plant = format!("cd /workspace; rm -r .cogni repo; ln -s {host} .cogni; echo planted");
    assert_eq!(turn(&world, "r3", &plant).await, "planted");
    assert!(tree.join(".cogni/messages.json").exists(), "control: it leads to the host's");
    assert_eq!(turn(&world, "r4", "test ! -L /workspace/.cogni && echo fresh").await, "fresh");
    assert_eq!(fs::read_to_string(&bait).unwrap(), "the host's own");
    assert_eq!(fs::read_dir(host).unwrap().count(), 1, "nothing was written beside it");
    end(&world).await;
}

/// Whatever the worker had done by then, the next run of the thread finds the memory.
#[tokio::test]
async fn a_killed_worker_leaves_the_memory() {
    let mut world = World::with(&format!("{}{LEASE}", obedient_agent(""))).await;
    assert!(world.stop_proxy().await);
    let points =
        [Point::WorkspaceMade, Point::Prepared, Point::WorkspaceMade, Point::Started, Point::SettleStored];
    let mut memory = String::new();
    for (number, point) in points.into_iter().enumerate() {
        let run = format!("r{number}");
        let armed = format!("{}:kill", point.name());
        let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", &armed)).await;
        let detached = ["--detach", "--state-key", "chat"];
        let script = "cat /workspace/MEMORY.md; echo -n x >> /workspace/MEMORY.md; echo .";
        assert_eq!(obey(&world, &run, &detached, script).await.code, Some(0));
        up.child.wait().await.unwrap();
        let next = Up::start(world.sluice()).await;
        let record = ended(&world, &run).await;
        assert_eq!(record["answer"], format!("{memory}."), "{point:?}: {record:#}");
        memory.push('x');
        gc(&world, &[]).await;
        assert_eq!(workspaces(&world).len(), 1, "{point:?}: it is kept, and no second one is left");
        if memory.len() == points.len() {
            gc(&world, &["--kept"]).await;
        }
        next.stop(Signal::TERM).await;
        kill_process(Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(), Signal::KILL).ok();
    }
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_thread_cannot_outgrow_its_disk() {
    const GROWS: &str = "head -c 36M /dev/zero > \"/workspace/$(date +%N)\" && echo fits || echo full";
    let world = World::with(&obedient_agent("")).await;
    assert_eq!(turn(&world, "r1", GROWS).await, "fits");
    assert_eq!(turn(&world, "r2", GROWS).await, "full", "an image bounds itself");
    end(&world).await;

    world.reconfigure("[sandbox]\n", "[sandbox]\nworkspaces = 'directory'\n");
    let waits = format!("{GROWS}; sleep 10");
    let options = ["--state-key", "dir"];
    assert_eq!(obey(&world, "d1", &options, GROWS).await.stdout.trim(), "fits");
    let outcome = obey(&world, "d2", &options, &waits).await;
    assert!(outcome.stderr.contains("its workspace grew beyond 64 MiB"), "{outcome:?}");
    let outcome = obey(&world, "d3", &options, "echo never").await;
    let said = "its workspace grew beyond 64 MiB in earlier runs of its thread: remove the thread";
    assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:?}");
    end(&world).await;
}

#[tokio::test]
async fn a_workspace_goes_when_its_thread_rests() {
    let world = World::with(&obedient_agent("keep = '5s'\n")).await;
    assert_eq!(turn(&world, "r1", REMEMBERS).await, NOTHING);
    pace(Duration::from_secs(3)).await;
    assert_eq!(turn(&world, "r2", &format!("{REMEMBERS}; sleep 2")).await, "x; 3");
    gc(&world, &[]).await;
    assert_eq!(workspaces(&world).len(), 1, "control: its time begins with the last run");
    let collect = || async {
        gc(&world, &[]).await;
        workspaces(&world).len()
    };
    eventually("its time is over", collect, |count| *count == 0).await;
    assert_eq!(turn(&world, "r3", REMEMBERS).await.split(';').next(), NOTHING.split(';').next());
    end(&world).await;
}

/// While a run has the workspace, no pass of gc takes it, however old it is.
#[tokio::test]
async fn a_workspace_in_use_stays() {
    let world = World::with(&obedient_agent("keep = '1s'\n")).await;
    assert_eq!(turn(&world, "r1", REMEMBERS).await, NOTHING);
    // Its time is over when the next run takes it.
    pace(Duration::from_secs(1)).await;
    let script = "until [ -e go ]; do sleep 0.1; done; cat /workspace/MEMORY.md";
    let collect = async {
        let state = async || record(&world, "r2").await["state"].clone();
        let exists = async || world.sluice().run(&["runs", "show", "r2", "--json"]).await.code == Some(0);
        eventually("r2 is ordered", exists, |exists| *exists).await;
        eventually("r2 runs", state, |state| state == "running").await;
        gc(&world, &["--kept"]).await;
        let_go(&world, "r2").await;
    };
    let (answer, ()) = tokio::join!(turn(&world, "r2", script), collect);
    assert_eq!(answer, "x");
    end(&world).await;
}

/// The clone is new, and begins where the thread's branch ends.
#[tokio::test]
async fn a_thread_gets_a_new_clone_for_each_run() {
    const COMMITS: &str = "git log --format=%s; git status --short; echo x >> a.txt; git commit --quiet -am change; \
                           echo dirt > dirt.txt; cat ../MEMORY.md 2>/dev/null; echo -n remembered > ../MEMORY.md; echo .";
    let world = World::with(&obedient_agent("")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let url = remote.url();
    for (run, seen) in [("r1", "first\n."), ("r2", "change\nremembered.")] {
        let outcome = obey(&world, run, &["--state-key", "chat", "--repo", &url], COMMITS).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), seen), "{outcome:?}");
    }
    assert_eq!(remote.branches().len(), 2, "{:?}", remote.branches());
    // Without a repository, the clone stays as it was left.
    assert_eq!(turn(&world, "r3", "cat /workspace/repo/dirt.txt").await, "dirt");
    end(&world).await;
}
