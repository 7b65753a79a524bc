//! Tests `sluice runs`, `backup` and `restore`: they report runs, also those with a killed process.

use std::fs;

use harness::{Outcome, World, docker, eventually};
use serde_json::{Value, json};

use crate::sandbox::{run, shell_agent, world_with};

async fn ls(world: &World, more: &[&str]) -> Vec<Value> {
    let outcome = world.sluice().run(&[&["runs", "ls", "--json"], more].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()["runs"].as_array().unwrap().clone()
}

async fn show(world: &World, run: &str) -> Value {
    world.sluice().run(&["runs", "show", run, "--json"]).await.result()
}

async fn run_as(world: &World, run: &str, more: &[&str]) -> Outcome {
    world.sluice().run(&[&["run", "--agent", "test:sh", "--run-id", run], more, &["q"]].concat()).await
}

/// Returns the values under `key`.
fn each<'v>(values: &'v [Value], key: &str) -> Vec<&'v str> {
    values.iter().map(|value| value[key].as_str().unwrap()).collect()
}

#[tokio::test]
async fn show_tells_end_and_usage_of_each_run() {
    let call = r#"curl -sS --unix-socket /llm-sock/llm.sock http://x/v1/chat/completions -H 'content-type: application/json' \
        -d '{"model":"fake","messages":[{"role":"user","content":"hi"}]}' >/dev/null && printf 'an\033[2J answer'"#;
    let slow = "[agents.'test:slow']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['sleep', '60']\nprotocol = 'text'\nrun_timeout = '300ms'\n";
    let agents = format!("{}{slow}", shell_agent(call, ""));
    let world = World::with(&agents).await;
    assert_eq!(run_as(&world, "good", &["--account", "acct-1"]).await.code, Some(0));
    assert_eq!(run_as(&world, "bad", &["--image", "no-such-image"]).await.code, Some(70));
    let late = world.sluice().run(&["run", "--agent", "test:slow", "--run-id", "late", "q"]).await;
    assert_eq!(late.code, Some(124), "{late:?}");

    let runs = ls(&world, &[]).await;
    assert_eq!(each(&runs, "run_id"), ["late", "bad", "good"]);
    assert_eq!(each(&runs, "state"), ["timed_out", "failed", "succeeded"]);
    assert_eq!((&runs[2]["usage"]["calls"], &runs[2]["exit_code"]), (&json!(1), &json!(0)));
    assert!(runs[2]["usage"]["tokens"]["output"].as_u64().unwrap() > 0, "{}", runs[2]);
    assert_eq!(runs[0]["error"]["message"], "stopped after 300ms");
    assert!(runs[1]["error"]["message"].as_str().unwrap().contains("no-such-image"));
    for (filter, found) in [
        (["--state", "failed"], vec!["bad"]),
        (["--account", "acct-1"], vec!["good"]),
        (["--agent", "test:slow"], vec!["late"]),
        (["--before", "late"], vec!["bad", "good"]),
        (["-n", "1"], vec!["late"]),
    ] {
        assert_eq!(each(&ls(&world, &filter).await, "run_id"), found, "{filter:?}");
    }
    let good = show(&world, "good").await;
    let (resources, events) = (good["resources"].as_array().unwrap(), good["events"].as_array().unwrap());
    let mut kinds = each(resources, "kind");
    kinds.sort_unstable();
    assert_eq!(kinds, ["container", "grant", "listener", "workspace"]);
    assert!(resources.iter().all(|thing| thing["stage"] == "removed"), "{good}");
    let told: Vec<_> = each(events, "kind");
    assert_eq!(told, ["status", "status", "status", "status", "usage_report", "done"], "{good}");
    let bad = &show(&world, "bad").await["error"];
    assert!(
        bad["code"] == "image_missing" && bad["detail"].as_str().unwrap().contains("no-such-image"),
        "{bad}"
    );
    let late = &show(&world, "late").await["error"];
    assert!(late["code"] == "timeout" && late["detail"].is_null(), "{late}");
    assert_eq!(good["order"]["messages"][0]["content"], "q");
    let text = world.sluice().run(&["runs", "show", "good"]).await.stdout;
    assert!(text.contains("succeeded") && text.contains("an answer") && !text.contains('\x1b'), "{text}");
    let table = world.sluice().run(&["runs", "ls", "-n", "2"]).await.stdout;
    assert!(table.lines().count() == 4 && table.ends_with("there are more: --before bad\n"), "{table}");
    let bad = table.lines().find(|line| line.starts_with("bad ")).unwrap();
    assert!(bad.contains(" image_missing ") && bad.ends_with(" q"), "its failure and its question: {table}");
    let good = world.sluice().run(&["runs", "ls", "--account", "acct-1"]).await.stdout;
    assert!(good.contains("succeeded  -  "), "control: {good}");
    let unknown = world.sluice().run(&["runs", "show", "r9"]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.starts_with("sluice: no run r9: "), "{unknown:?}");
}

#[tokio::test]
async fn a_run_is_stored_before_its_resources() {
    let world = world_with("touch up; until [ -e go ]; do sleep 0.02; done").await;
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
    let workspace = world.workspace("r1").await;
    eventually("the agent runs", || async { workspace.join("up").exists() }, |up| *up).await;
    let running = ls(&world, &["--state", "running"]).await;
    assert_eq!(each(&running, "run_id"), ["r1"]);
    assert_eq!((&running[0]["epoch"], &running[0]["lease"]["over"]), (&json!(1), &json!(false)));
    let run = show(&world, "r1").await;
    let name = |kind| {
        let resources = run["resources"].as_array().unwrap();
        let thing = resources.iter().find(|thing| thing["kind"] == kind).unwrap();
        assert_eq!(thing["stage"], "made", "{thing}");
        thing["name"].as_str().unwrap().to_owned()
    };
    // The resources exist under the names in the rows, so a process that reads the rows finds them.
    assert_eq!(workspace, world.path().join("workspaces").join(name("workspace")).join("tree"));
    assert!(world.path().join("run/runs").join(name("listener")).join("llm.sock").exists());
    let containers = docker::containers_of(&world.installation()).await;
    assert!(containers.iter().any(|found| found.contains(&name("container"))), "{containers:?}");
    assert_eq!(name("grant"), "r1");
    fs::write(workspace.join("go"), "").unwrap();
    let outcome: Outcome = child.wait_with_output().await.unwrap().into();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(ls(&world, &["--state", "running"]).await, Vec::<Value>::new());
}

#[tokio::test]
async fn nothing_acts_where_nothing_can_be_stored() {
    let world = world_with("true").await;
    fs::write(world.path().join("file"), "").unwrap();
    let nowhere = format!("store.url=sqlite://{}/file/sluice.db", world.path().display());
    let refused = world.sluice().run(&["run", "--agent", "test:sh", "q", "--set", &nowhere]).await;
    assert_eq!(refused.code, Some(69), "{refused:?}");
    assert!(refused.stderr.contains("/file/sluice.db"), "{refused:?}");
    assert!(!world.path().join("workspaces").exists(), "not even the directory of workspaces");
    world.assert_nothing_left().await;
    let doctor = world.sluice().run(&["doctor", "--set", &nowhere]).await;
    assert!(doctor.stdout.contains("broken   store: "), "{doctor:?}");
    assert_eq!(run(&world).await.code, Some(0), "where it can, it does");
}

#[tokio::test]
async fn a_run_never_runs_twice() {
    let world = world_with("echo ran").await;
    let starts = docker::Starts::follow(&world.installation(), &world.path().join("starts")).await;
    let (one, other) = tokio::join!(run_as(&world, "r1", &[]), run_as(&world, "r1", &[]));
    let again = run_as(&world, "r1", &[]).await;
    for outcome in [&one, &other, &again] {
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "ran\n"), "{outcome:?}");
    }
    assert_eq!(starts.of("r1"), 1, "whoever orders it again is told of the first one");
    let different = run_as(&world, "r1", &["--account", "acct-2"]).await;
    assert!(
        different.code == Some(2)
            && different
                .stderr
                .starts_with("sluice: run id r1 is taken by a different request: choose another --run-id\n"),
        "{different:?}"
    );
    assert_eq!(show(&world, "r1").await["answer"], "ran");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_killed_run_is_listed_with_its_resources() {
    let world = world_with("touch up; sleep 60").await;
    let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]);
    let up = world.workspace("r1").await.join("up");
    eventually("the agent runs", || async { up.exists() }, |up| *up).await;
    child.kill().await.unwrap();
    let left = show(&world, "r1").await;
    assert_eq!((&left["state"], &left["ended_ms"]), (&json!("running"), &Value::Null));
    let made = left["resources"].as_array().unwrap();
    assert!(made.len() == 4 && made.iter().all(|thing| thing["stage"] == "made"), "{left}");
    // The store is as good as before.
    assert_eq!(run_as(&world, "r2", &["--image", "no-such-image"]).await.code, Some(70));
    assert_eq!(ls(&world, &[]).await.len(), 2);
    let container = made.iter().find(|thing| thing["kind"] == "container").unwrap();
    docker::docker(&["rm", "--force", container["name"].as_str().unwrap()]).await;
}

/// The backup goes into another store and, with `--force`, into a full one.
#[tokio::test]
async fn a_backup_is_restored() {
    let world = world_with("echo ran").await;
    run(&world).await;
    let file = world.path().join("backup.ndjson").display().to_string();
    let backup = world.sluice().env("SLUICE_STORE_PASSWORD", "unused").run(&["backup", &file]).await;
    assert_eq!(backup.code, Some(0), "{backup:?}");
    let full = world.sluice().run(&["restore", &file]).await;
    assert!(full.code == Some(2) && full.stderr.contains("--force"), "{full:?}");
    let elsewhere = format!("store.url=sqlite://{}/elsewhere/sluice.db", world.path().display());
    for arguments in [&["restore", &file, "--set", &elsewhere][..], &["restore", &file, "--force"]] {
        let restored = world.sluice().run(arguments).await;
        assert_eq!(restored.code, Some(0), "{restored:?}");
    }
    for more in [&["--set", &elsewhere][..], &[]] {
        assert_eq!(each(&ls(&world, more).await, "run_id"), ["r1"]);
    }
}
