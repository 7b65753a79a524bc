//! Tests the removal of resources of runs that are over. A resource stays if its run lives, if it belongs to another
//! installation, or if it cannot be inspected.

use std::fs;

use harness::{
    Outcome, World,
    docker::{RemovalRejectingDocker, containers_of, docker},
    eventually,
    store::{self, end},
};
use platform_core::id::RunId;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::sandbox::{shell_agent, world_with};

/// Script of an agent that goes on until it is ended.
const LINGER: &str = "sleep 600";

/// Kills the process of a run in the middle: all resources of the run remain, without a worker.
async fn killed(world: &World, run: &str) {
    let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", run, "q"]);
    let running = || async {
        let shown = show(world, run).await;
        if shown["state"] == "running" {
            container_state(&name(&shown, "container")).await
        } else {
            String::new()
        }
    };
    eventually("the agent runs", running, |state| state == "running").await;
    child.kill().await.unwrap();
}

async fn container_state(container: &str) -> String {
    let filter = format!("name=^/{container}$");
    docker(&["ps", "--all", "--filter", &filter, "--format", "{{.State}}"]).await
}

async fn show(world: &World, run: &str) -> Value {
    let outcome = world.sluice().run(&["runs", "show", run, "--json"]).await;
    if outcome.code == Some(0) { outcome.result() } else { Value::Null }
}

/// Returns the name of a run's resource of a kind, from its row.
fn name(run: &Value, kind: &str) -> String {
    let rows = run["resources"].as_array().unwrap();
    rows.iter().find(|row| row["kind"] == kind).unwrap()["name"].as_str().unwrap().to_owned()
}

async fn gc(world: &World, more: &[&str]) -> (Outcome, Vec<Value>) {
    let outcome = world.sluice().run(&[&["runs", "gc", "--json"], more].concat()).await;
    let things = outcome.result()["things"].as_array().unwrap().clone();
    (outcome, things)
}

/// Returns the outcome for each resource of a run, as `kind outcome`.
fn became(things: &[Value], run: &str) -> Vec<String> {
    let mut found: Vec<_> = things
        .iter()
        .filter(|thing| thing["run"] == run)
        .map(|thing| format!("{} {}", thing["kind"].as_str().unwrap(), thing["outcome"].as_str().unwrap()))
        .collect();
    found.sort();
    found
}

fn stages(run: &Value) -> Vec<String> {
    let rows = run["resources"].as_array().unwrap();
    rows.iter().map(|row| row["stage"].as_str().unwrap().to_owned()).collect()
}

async fn at_the_proxy(world: &World) -> Vec<String> {
    let answer = world.control.send(http::Method::GET, "/v1/runs", String::new()).await;
    let runs: Vec<Value> = serde_json::from_str(&answer.text()).unwrap();
    let mut ids: Vec<_> =
        runs.iter().map(|run| run["grant"]["run_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

fn workspaces(world: &World) -> usize {
    fs::read_dir(world.path().join("workspaces")).unwrap().count()
}

#[tokio::test]
async fn gc_removes_only_resources_of_ended_runs() {
    let world = world_with(LINGER).await;
    killed(&world, "over").await;
    killed(&world, "live").await;
    let kept = ["container kept", "grant kept", "workspace kept"];
    let (outcome, things) = gc(&world, &[]).await;
    // No worker has these runs, and yet they are kept: for a worker that takes them over.
    assert_eq!(
        (outcome.code, became(&things, "over"), became(&things, "live")),
        (Some(0), kept.map(str::to_owned).to_vec(), kept.map(str::to_owned).to_vec())
    );
    end(&world, "over").await;
    let (outcome, things) = gc(&world, &["--dry-run"]).await;
    assert_eq!((outcome.code, &outcome.result()["dry_run"]), (Some(0), &json!(true)));
    assert_eq!(
        became(&things, "over"),
        ["container would_remove", "grant would_remove", "workspace would_remove"]
    );
    assert_eq!(
        (containers_of(&world.installation()).await.len(), workspaces(&world)),
        (2, 2),
        "it was only said"
    );

    let (outcome, things) = gc(&world, &[]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(became(&things, "over"), ["container removed", "grant removed", "workspace removed"]);
    assert_eq!(became(&things, "live"), kept);
    assert_eq!(stages(&show(&world, "over").await), ["removed"; 4]);
    let live = show(&world, "live").await;
    assert_eq!(containers_of(&world.installation()).await, [name(&live, "container")]);
    assert_eq!(container_state(&name(&live, "container")).await, "running");
    assert_eq!((at_the_proxy(&world).await, workspaces(&world)), (vec!["live".to_owned()], 1));
    assert_eq!(stages(&live), ["made"; 4]);
    assert_eq!(became(&gc(&world, &[]).await.1, "over"), [""; 0], "nothing is left of it to tell of");

    end(&world, "live").await;
    let table = world.sluice().run(&["runs", "gc"]).await;
    assert!(table.code == Some(0) && table.stdout.ends_with("\n3 removed\n"), "{table:?}");
    assert!(table.stdout.contains("its run has ended: failed"), "{table:?}");
    assert_eq!(world.sluice().run(&["runs", "gc"]).await.stdout, "nothing is left\n");
    world.assert_nothing_left().await;
}

/// A resource of a run that goes on stays as it was.
#[tokio::test]
async fn a_missing_resource_is_recorded_as_gone() {
    let world = world_with(LINGER).await;
    killed(&world, "r1").await;
    let run = show(&world, "r1").await;
    docker(&["rm", "--force", &name(&run, "container")]).await;
    world.control.close_in(1, &RunId::parse("r1").unwrap(), 0).await.unwrap();
    let unmounted = Command::new("umount").arg(world.workspace("r1").await).status().await.unwrap();
    assert!(unmounted.success());
    fs::remove_dir_all(world.path().join("workspaces")).unwrap();
    assert_eq!(became(&gc(&world, &[]).await.1, "r1"), [""; 0]);
    assert_eq!(stages(&show(&world, "r1").await), ["made"; 4], "its holder may be about to say so");
    end(&world, "r1").await;
    // A container by another name made them: a host's name proves nothing.
    store::rewrite(&world, |table, row| {
        if table == "resources" {
            row["owner"] = json!("renamed/1/2");
        }
    })
    .await;
    assert_eq!(world.sluice().run(&["store", "adopt"]).await.code, Some(0), "restored, it served no host");
    // On another host they may be there all the same.
    let elsewhere = world.path().join("elsewhere").display().to_string();
    let refused = world.sluice().env("SLUICE_SANDBOX_STATE_DIR", &elsewhere).run(&["runs", "gc"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(stages(&show(&world, "r1").await), ["made"; 4]);
    let things = gc(&world, &[]).await.1;
    assert_eq!(
        became(&things, "r1"),
        ["container was_gone", "grant was_gone", "listener was_gone", "workspace was_gone"]
    );
    assert_eq!(stages(&show(&world, "r1").await), ["removed"; 4]);
}

/// Makes a container that looks like one of a run, by its name and labels.
async fn plant(name: &str, labels: &[(&str, &str)], socket_dir: Option<&str>) {
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("--label={key}={value}")).collect();
    let mount = socket_dir.map(|dir| format!("--volume={dir}:/llm-sock:ro"));
    let mut arguments = vec!["create", "--network=none", "--name", name];
    arguments.extend(labels.iter().map(String::as_str).chain(mount.as_deref()));
    arguments.extend(["sluicegate/sandbox-runtime:latest", "true"]);
    docker(&arguments).await;
}

/// Returns the containers of this test that a reaper would remove if it trusted a label or a name.
async fn believed(world: &World, filter: &str) -> Vec<String> {
    let filter = filter.replace("HERE", &world.installation());
    let names = docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).await;
    names.lines().filter(|name| name.contains(&world.installation())).map(str::to_owned).collect()
}

#[tokio::test]
async fn gc_spares_resources_it_cannot_attribute() {
    let world = world_with(LINGER).await;
    for run in ["r1", "r2", "r3"] {
        killed(&world, run).await;
        end(&world, run).await;
    }
    let here = world.installation();
    let (r1, r2, r3) = (show(&world, "r1").await, show(&world, "r2").await, show(&world, "r3").await);
    // In the place of r2's container one without labels, in that of r3's another store's.
    for run in [&r2, &r3] {
        docker(&["rm", "--force", &name(run, "container")]).await;
    }
    let ours = |run| [("sluicegate.installation", here.as_str()), ("sluicegate.run", run)];
    let theirs = [("sluicegate.installation", "somebody-else"), ("sluicegate.run", "r1")];
    let socket =
        |run: &Value| world.path().join("run/runs").join(name(run, "listener")).display().to_string();
    let elsewhere = world.path().join("elsewhere").display().to_string();
    let foreign = [
        (name(&r2, "container"), vec![], Some(socket(&r2))),
        (name(&r3, "container"), ours("r3").to_vec(), Some(elsewhere)),
        (format!("{here}-another-installations"), theirs.to_vec(), Some(socket(&r1))),
        (format!("{here}-somebodys"), ours("r1").to_vec(), Some(socket(&r1))),
        (format!("sluice-{here}-never"), ours("never").to_vec(), None),
    ];
    for (name, labels, socket) in &foreign {
        plant(name, labels, socket.as_deref()).await;
    }
    let stranger = world.run("stranger", "acct-1").await;
    let strangers = world.path().join("workspaces").join("5".repeat(32));
    fs::create_dir(&strangers).unwrap();

    let (outcome, things) = gc(&world, &[]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        became(&things, "r1").contains(&"container removed".to_owned()),
        "the control: it removes what is dead"
    );
    assert_eq!(became(&things, "stranger"), ["grant unknown"]);
    assert_eq!(became(&things, "never"), ["container unknown"]);
    let unknown = things.iter().find(|thing| thing["name"] == "5".repeat(32)).unwrap();
    assert_eq!((&unknown["outcome"], &unknown["run"]), (&json!("unknown"), &Value::Null));
    assert_eq!(stranger.agent.get("/v1/models").await.status, 200);
    assert!(strangers.exists());
    for (name, ..) in &foreign {
        assert_eq!(container_state(name).await, "created", "{name}");
    }
    // `--unknown` asks for them, and they are still kept, because they were made just now. A container that contradicts
    // itself is never removed.
    let (_, things) = gc(&world, &["--unknown"]).await;
    assert_eq!(
        (became(&things, "never"), became(&things, "stranger")),
        (vec!["container kept".to_owned()], vec!["grant removed".to_owned()])
    );
    assert_eq!(
        became(&things, "r3").iter().filter(|what| what.starts_with("container")).collect::<Vec<_>>(),
        ["container unknown"]
    );
    // A cleanup that trusts labels or names alone would remove other installations' resources.
    assert_eq!(believed(&world, "label=sluicegate.installation=HERE").await.len(), 3);
    assert_eq!(believed(&world, "name=^/sluice-HERE-").await.len(), 3);
    assert_eq!(believed(&world, "label=sluicegate.run=r1").await.len(), 2);
    for (name, ..) in &foreign {
        docker(&["rm", "--force", name]).await;
    }
}

/// The run goes on meanwhile.
#[tokio::test]
async fn gc_removes_resources_of_a_fenced_worker() {
    let world = world_with(LINGER).await;
    killed(&world, "r1").await;
    let container = name(&show(&world, "r1").await, "container");
    // Restored, a run that goes on is at a later epoch. Its container may still be adopted.
    store::rewrite(&world, |_, _| ()).await;
    assert!(show(&world, "r1").await["epoch"].as_u64().unwrap() > 1);
    assert_eq!(became(&gc(&world, &[]).await.1, "r1"), ["container kept", "grant kept", "workspace kept"]);
    store::rewrite(&world, |table, row| {
        if table == "resources" && row["kind"] == "container" {
            row["state"] = json!("removed");
        }
    })
    .await;
    let (outcome, things) = gc(&world, &[]).await;
    assert_eq!(became(&things, "r1"), ["container removed", "grant kept", "workspace kept"], "{outcome:?}");
    assert!(outcome.stdout.contains("its run was taken over"), "{outcome:?}");
    assert_eq!(container_state(&container).await, "");
    end(&world, "r1").await;
    gc(&world, &[]).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn unreadable_resources_stay_and_others_go() {
    let mut world = world_with(LINGER).await;
    killed(&world, "r1").await;
    killed(&world, "r2").await;
    end(&world, "r1").await;
    end(&world, "r2").await;
    let run = show(&world, "r1").await;
    let (outcome, things) = gc(&world, &["--set", "sandbox.docker_socket=/nowhere/docker.sock"]).await;
    assert_eq!(
        (outcome.code, became(&things, "r1")),
        (Some(69), vec!["grant removed".to_owned()]),
        "{outcome:?}"
    );
    assert_eq!(outcome.result()["blind"][0]["part"], "docker");
    assert_eq!(
        (container_state(&name(&run, "container")).await.as_str(), workspaces(&world)),
        ("running", 2)
    );

    world.stop_proxy().await;
    let (outcome, things) = gc(&world, &[]).await;
    assert_eq!(
        (outcome.code, became(&things, "r1")),
        (Some(69), vec!["container removed".to_owned(), "workspace removed".to_owned()])
    );
    let table = world.sluice().run(&["runs", "gc"]).await;
    assert!(table.stdout.starts_with("proxy was not looked at: no proxy answers"), "{table:?}");
    world.start_proxy().await;
    gc(&world, &[]).await;
    for run in ["r1", "r2"] {
        assert_eq!(stages(&show(&world, run).await), ["removed"; 4]);
    }
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn one_stuck_resource_does_not_keep_others() {
    let world = world_with(LINGER).await;
    killed(&world, "r1").await;
    end(&world, "r1").await;
    let rejecting = RemovalRejectingDocker::on(&world.path().join("rejecting.sock"));
    let setting = format!("sandbox.docker_socket={}", rejecting.socket().display());
    let (outcome, things) = gc(&world, &["--set", &setting]).await;
    assert_eq!(
        (outcome.code, became(&things, "r1")),
        (Some(1), ["container failed", "grant removed", "workspace kept"].map(str::to_owned).to_vec()),
        "{outcome:?}"
    );
    let container = things.iter().find(|thing| thing["kind"] == "container").unwrap();
    assert!(container["error"].as_str().unwrap().contains("not today"), "{container}");
    assert!(outcome.stdout.contains("has it mounted"), "{outcome:?}");
    let (outcome, things) = gc(&world, &[]).await;
    assert_eq!(
        (outcome.code, became(&things, "r1")),
        (Some(0), ["container removed", "workspace removed"].map(str::to_owned).to_vec())
    );
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_kept_workspace_goes_on_request() {
    let world = world_with("touch result").await;
    let kept = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "--keep", "q"]).await;
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert_eq!(became(&gc(&world, &[]).await.1, "r1"), ["workspace kept"]);
    assert!(world.workspace("r1").await.join("result").exists());
    assert_eq!(became(&gc(&world, &["--kept"]).await.1, "r1"), ["workspace removed"]);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn doctor_reaps_what_its_dry_run_explained() {
    let world = World::with(&shell_agent(LINGER, "")).await;
    killed(&world, "r1").await;
    end(&world, "r1").await;
    let refused = world.sluice().run(&["doctor", "--dry-run"]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("--reap"), "{refused:?}");
    let explained = world.sluice().run(&["doctor", "--reap", "--dry-run"]).await;
    assert!(explained.stdout.contains("would be removed  its run has ended: failed"), "{explained:?}");
    assert!(
        explained.code == Some(0) && explained.stdout.ends_with("\n3 would be removed\n"),
        "{explained:?}"
    );
    assert_eq!(containers_of(&world.installation()).await.len(), 1);
    let removed = world.sluice().run(&["doctor", "--reap", "--json"]).await;
    let things = removed.result()["reaped"]["things"].as_array().unwrap().clone();
    assert_eq!(
        became(&things, "r1"),
        ["container removed", "grant removed", "workspace removed"],
        "{removed:?}"
    );
    world.assert_nothing_left().await;
}
