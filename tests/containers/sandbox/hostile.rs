//! Agents that mean harm: each ends with the right code, and host, disk and the runs beside it are as they were.

use std::fs;

use harness::{World, docker::docker, eventually};
use platform_runtime::settings::Settings;
use serde_json::{Value, json};

use super::{run, shell_agent};

/// An attack with its settings and its outcome: exit code of `sluice`, code of the error, reason for which the agent
/// was ended, its own exit code, what it printed.
type Attack = (&'static str, &'static str, Outcome);
type Outcome = (i32, Option<&'static str>, Option<&'static str>, i32, &'static str);

/// Limits an agent's time, which begins before its container does.
const LIMITED: &str = "run_timeout = '6s'";

const ATTACKS: &[Attack] = &[
    // Uses its grace, and is polite: that changes nothing, and its last words are recorded.
    (
        "trap 'echo last words; exit 0' TERM; echo first; while :; do sleep 0.1; done",
        LIMITED,
        (124, Some("timeout"), Some("timeout"), 0, "first\nlast words\n"),
    ),
    // Stops itself: a stopped process does not receive SIGTERM.
    ("echo up; kill -STOP $$", LIMITED, (124, Some("timeout"), Some("timeout"), 137, "up\n")),
    // Closes its output and goes on: it ends when it ends.
    ("echo up; exec >&- 2>&-; sleep 2; exit 3", "", (1, Some("container_failed"), None, 3, "up\n")),
    ("exec >&- 2>&-; sleep 60", LIMITED, (124, Some("timeout"), Some("timeout"), 143, "")),
    // Leaves a process behind that holds its output open.
    ("sleep 60 & echo done", "", (0, None, None, 0, "done\n")),
    ("(trap '' TERM HUP; exec sleep 60) & disown; echo done", "", (0, None, None, 0, "done\n")),
    // Dies of a signal that looks like the kernel's for want of memory.
    ("kill -KILL $$", "", (1, Some("container_failed"), None, 137, "")),
    // Attacks the init, which passes on the signals it gets and dies of none.
    ("kill -KILL 1; echo still there", "", (0, None, None, 0, "still there\n")),
    // The crowd as a whole is too large, none of it is.
    (
        r#"for i in 1 2 3 4 5 6; do perl -e 'my $m = "x" x 20_000_000; sleep 60' & done; wait -n; exit 137"#,
        "memory = '64 MiB'",
        (137, Some("oom_killed"), None, 137, ""),
    ),
    // Files without content take memory all the same.
    (
        r#"exec perl -e 'for (1..10_000_000) { open my $f, ">", "/tmp/$_" or exit 28 }'"#,
        "memory = '64 MiB'",
        (137, Some("oom_killed"), None, 137, ""),
    ),
];

#[tokio::test]
async fn hostile_agents_end_as_they_should() {
    for (script, settings, (code, error, killed_by, exit_code, printed)) in ATTACKS {
        let world = World::with(&shell_agent(script, settings)).await;
        let outcome = run(&world).await;
        let result = outcome.result();
        assert_eq!(
            (outcome.code, &result["error"]["code"], &result["killed_by"], &result["exit_code"]),
            (Some(*code), &json!(error), &json!(killed_by), &json!(exit_code)),
            "{script}: {result}"
        );
        assert_eq!(result["stdout"]["text"], *printed, "{script}: {result}");
        world.assert_nothing_left().await;
    }
}

/// Script that fills each place with more than it can hold, and prints how much fitted.
const FILLER: &str = r#"
    for place in /tmp /var/tmp /run /dev/shm; do
        head -c 1G /dev/zero 2>&1 >$place/big | grep -o 'No space left on device'
        stat --format %s $place/big
    done"#;

#[tokio::test]
async fn writable_places_are_bounded_and_in_memory() {
    let sizes = "memory = '1 GiB'\ntmp_size = '64 MiB'\nshm_size = '32 MiB'";
    let world = World::with(&shell_agent(FILLER, sizes)).await;
    let outcome = run(&world).await;
    let full = |size: u64| format!("No space left on device\n{size}\n");
    let expected = full(64 << 20) + &full(64 << 20) + &full(8 << 20) + &full(32 << 20);
    assert_eq!(outcome.result()["stdout"]["text"], expected, "{outcome:?}");
    world.assert_nothing_left().await;
    // It counts as the agent's memory, so the host's is not at stake either.
    let world = World::with(&shell_agent(FILLER, "memory = '48 MiB'")).await;
    let outcome = run(&world).await;
    assert_eq!(outcome.result()["oom_seen"], json!(true), "{outcome:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_workspace_cannot_be_filled_beyond_its_size() {
    // Where workspaces have no size yet there is nothing to hold.
    let sized =
        Settings::json_schema()["properties"]["sandbox"]["properties"].get("workspace_size").is_some();
    let size = if sized { "workspace_size = '16 MiB'\n" } else { "" };
    for filler in [
        "head -c 64M /dev/zero > big; stat --format %s big; echo end",
        "exec perl -e 'for (1..100_000) { open my $f, q(>), $_ or exit 28 } print 100_000'",
    ] {
        let world = World::with(&shell_agent(filler, "")).await;
        world.reconfigure("installation = ", &format!("{size}installation = "));
        let outcome = run(&world).await;
        let result = outcome.result();
        let printed = result["stdout"]["text"].as_str().unwrap();
        let refused = result["killed_by"] == "disk" || !(printed.contains("67108864") || printed == "100000");
        assert_eq!(refused, sized, "{filler}: {result}");
        world.assert_nothing_left().await;
    }
}

/// Returns the id of the run's container, once it exists.
async fn container(world: &World, run: &str) -> String {
    let name = format!("^/sluice-{}-{run}[.]", world.installation());
    let name = format!("name={name}");
    let look = || async { docker(&["ps", "--quiet", "--no-trunc", "--filter", &name]).await };
    eventually("it has a container", look, |id| !id.is_empty()).await
}

/// Counts the processes of a container, as the host sees them.
fn processes(container: &str) -> usize {
    let inside = |entry: &fs::DirEntry| {
        let cgroups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        cgroups.contains(container)
    };
    fs::read_dir("/proc").unwrap().flatten().filter(inside).count()
}

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    const LIMIT: usize = 64;
    let settings = format!("pids = {LIMIT}\nrun_timeout = '8s'");
    let world = World::with(&shell_agent("exec perl -e 'fork while 1'", &settings)).await;
    let watch = async {
        let id = container(&world, "r1").await;
        let mut most = 0;
        let look = || {
            most = most.max(processes(&id));
            std::future::ready((processes(&id), most))
        };
        eventually("it has grown and is gone", look, |(now, most)| *most > LIMIT / 2 && *now == 0).await.1
    };
    let (outcome, most) = tokio::join!(run(&world), watch);
    assert_eq!(outcome.code, Some(124), "{outcome:?}");
    assert!((LIMIT / 2..=LIMIT).contains(&most), "{most} processes");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_paused_agent_still_times_out() {
    for time in ["6s", "9s"] {
        let world = World::with(&shell_agent("echo up; sleep 60", &format!("run_timeout = '{time}'"))).await;
        let hold = async {
            let id = container(&world, "r1").await;
            let printed = || async { world.sluice().run(&["runs", "logs", "r1"]).await.stdout };
            eventually("the agent is up", printed, |printed| printed.contains("up")).await;
            docker(&["pause", &id]).await;
        };
        let (outcome, ()) = tokio::join!(run(&world), hold);
        let result: Value = outcome.result();
        assert_eq!(
            (outcome.code, &result["error"]["code"], &result["stdout"]["text"]),
            (Some(124), &json!("timeout"), &json!("up\n")),
            "{result}"
        );
        world.assert_nothing_left().await;
    }
}
