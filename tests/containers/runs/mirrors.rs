//! Tests mirrored repositories: real containers, a real remote, and agents that read while it is refreshed.

use std::{
    fs,
    os::unix::fs::chown,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use harness::{
    Outcome, Up, World, canary,
    docker::{containers_of, docker},
    eventually,
    eventually::eventually_within,
    mirrored_remote::MirroredRemote,
    served::Served,
    shell_agents::shell_agent,
    sluice::Sluice,
};
use http::Method;
use platform_core::name::SANDBOX_UID;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Longest duration of a run that refreshes its mirror.
const PATIENCE: Duration = Duration::from_secs(60);
/// Agent that waits for `1` in the repository, and says what it has seen.
const READER: &str = "cat /repo/current/number > /workspace/seen
    until grep -q 1 /repo/current/number; do sleep 0.02; done
    cat /repo/current/number; git -C /repo/current log --format=,%s
    touch /repo/current/number /repo/x 2>&1 | grep -o 'Read-only file system'";

fn sha(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let shown: Value = serde_json::from_str(&outcome.stdout).unwrap();
    shown["sha"].as_str().unwrap().to_owned()
}

async fn refresh(sluice: Sluice) -> String {
    sha(&sluice.run(&["repo", "refresh", "web", "--json"]).await)
}

/// Adds the repository to `world`, and returns the setting that mounts it.
async fn add(world: &World, remote: &MirroredRemote) -> String {
    let added = world.sluice().run(&["repo", "add", "web", &remote.url]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    added.stdout.lines().last().unwrap().to_owned()
}

async fn remove(world: &World, name: &str) {
    let removed = world.sluice().run(&["repo", "rm", name]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
}

#[tokio::test]
async fn a_running_agent_sees_a_refreshed_repository() {
    let world = World::with(&shell_agent(READER, "# volumes here")).await;
    let volume = format!("sluice-{}-repo-web", world.installation());
    let volumes = format!("volumes = [{{ volume = \"{volume}\", container_path = \"/repo\" }}]");
    world.reconfigure("# volumes here", &volumes);
    let read = async || world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]).await;
    let missing = read().await;
    assert!(missing.stderr.contains("`sluice repo add web URL` makes it"), "{missing:?}");

    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    assert_eq!(add(&world, &remote).await, volumes, "the entry's line is printed");
    let run_id = "r2";
    let arguments = ["run", "--agent", "test:sh", "--run-id", run_id, "q"];
    let read = world.sluice().run(&arguments);
    let change = async {
        let seen = world.workspace(run_id).await.join("seen");
        let content = || async { fs::read_to_string(&seen).unwrap_or_default() };
        eventually("it reads", content, |text| text == "0").await;
        let pushed = remote.push("1");
        assert_eq!(refresh(world.sluice()).await, pushed);
    };
    let (read, ()) = tokio::join!(read, change);
    assert_eq!(read.code, Some(0), "{read:?}");
    assert_eq!(read.stdout.trim(), "1,1\nRead-only file system\nRead-only file system", "{read:?}");

    let kept = world.sluice().run(&["runs", "gc", "--unknown"]).await;
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let mirror = format!("sluice-{}-git-sync-web", world.installation());
    assert_eq!(containers_of(&world.installation()).await, [mirror], "gc leaves it");
    remove(&world, "web").await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_mirrors_container_has_no_credential() {
    const TOKEN: &str = "mirror-token-canary-0815";
    let world = World::start().await;
    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    let dir = world.path().join("token");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("token");
    harness::private_file(&file, TOKEN);
    canary::hand_out(TOKEN);
    let file = file.to_str().unwrap();
    let add = async || world.sluice().run(&["repo", "add", "core", &remote.url, "--token-file", file]).await;
    let refused = add().await;
    assert!(refused.code == Some(2) && refused.stderr.contains("chown 1001:1001"), "{refused:?}");
    assert!(containers_of(&world.installation()).await.is_empty(), "nothing is made");
    chown(&dir, Some(SANDBOX_UID), Some(SANDBOX_UID)).unwrap();
    chown(file, Some(SANDBOX_UID), Some(SANDBOX_UID)).unwrap();
    // A credential is never sent in the clear to another host, so this fails, and the mirror stays.
    let failed = add().await;
    assert!(failed.code == Some(69) && failed.stderr.contains("is not encrypted"), "{failed:?}");

    let name = format!("sluice-{}-git-sync-core", world.installation());
    let inspected = docker(&["inspect", &name]).await;
    assert!(!inspected.contains(TOKEN), "{inspected}");
    let found: Value = serde_json::from_str(&inspected).unwrap();
    let (config, host) = (&found[0]["Config"], &found[0]["HostConfig"]);
    assert_eq!(config["User"], "1001:1001");
    assert_eq!((&host["ReadonlyRootfs"], &host["CapDrop"]), (&json!(true), &json!(["ALL"])));
    assert_eq!(
        (&host["NetworkMode"], &host["RestartPolicy"]["Name"]),
        (&json!("bridge"), &json!("unless-stopped"))
    );
    assert_eq!(
        (&host["Privileged"], &host["SecurityOpt"]),
        (&json!(false), &json!(["no-new-privileges:true"]))
    );
    let mounts = found[0]["Mounts"].as_array().unwrap();
    let credential = mounts.iter().find(|mount| mount["Destination"] == "/credential").unwrap();
    assert_eq!(credential["RW"], false);
    let inside = docker(&["exec", &name, "cat", "/credential/token"]).await;
    assert_eq!(inside, TOKEN, "control: the file is there");
    let everywhere =
        docker(&["exec", &name, "sh", "-c", "cat /proc/*/environ /proc/*/cmdline | tr '\\0' ' '"]).await;
    assert!(everywhere.contains("GITSYNC_PASSWORD_FILE=/credential/token"), "{everywhere}");
    assert!(!everywhere.contains(TOKEN));

    let listed = world.sluice().run(&["repo", "ls", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let listed = &listed["repositories"][0];
    assert_eq!(
        (&listed["name"], &listed["state"], &listed["sha"]),
        (&json!("core"), &json!("up"), &json!(null))
    );
    assert!(listed["error"].as_str().unwrap().contains("is not encrypted"), "{listed}");
    remove(&world, "core").await;
    fs::remove_dir_all(dir).unwrap();
    world.assert_nothing_left().await;
}

/// Agent that refreshes its mirror as a host tool, and says what it reads before and after.
const REFRESHER: &str = r#"cat /repo/current/number; touch /workspace/reads
    until [ -e /workspace/pushed ]; do sleep 0.02; done; cat /repo/current/number; echo
    cogni-tool exec repo_refresh '{"repository":"web"}'; cat /repo/current/number; echo
    cogni-tool exec repo_refresh '{"repository":"other"}' 2>&1 | jq -r .code"#;

#[tokio::test]
async fn an_agent_refreshes_its_mirror() {
    let settings = "host_tools = ['repo_refresh']\nrun_timeout = '60s'\n# volumes here";
    let mut world = World::with(&shell_agent(REFRESHER, settings)).await;
    let volume = format!("sluice-{}-repo-web", world.installation());
    let volumes = format!("volumes = [{{ volume = \"{volume}\", container_path = \"/repo\" }}]");
    world.reconfigure("# volumes here", &volumes);
    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    add(&world, &remote).await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "q"];
    let read = world.sluice().within(PATIENCE).run(&arguments);
    let push = async {
        let workspace = world.workspace("r1").await;
        let reads = || async { workspace.join("reads").exists() };
        eventually_within(PATIENCE, "it reads", reads, |reads| *reads).await;
        let pushed = remote.push("1");
        fs::write(workspace.join("pushed"), "").unwrap();
        pushed
    };
    let (read, pushed) = tokio::join!(read, push);
    assert_eq!(read.code, Some(0), "{read:?}");
    // Control: without the tool the agent reads what was there, because the mirror's own interval is longer.
    let expected = format!("00\n{}\n1\nnot_found", json!({ "commit": pushed }));
    assert_eq!(read.stdout.trim(), expected, "{read:?}");
    let events = world.sluice().run(&["runs", "events", "r1", "--json"]).await.events();
    let calls: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "host_tool")
        .map(|event| (event["name"].as_str().unwrap(), event["state"].as_str().unwrap()))
        .collect();
    assert_eq!(calls, [("repo_refresh", "done"), ("repo_refresh", "failed")], "{events:#?}");
    remove(&world, "web").await;
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// Returns the syncs of a mirror's container.
async fn syncs(container: &str) -> usize {
    docker(&["logs", container]).await.lines().count()
}

#[tokio::test]
async fn refreshes_at_once_share_a_fetch() {
    let there = Served::with("").await;
    let world = &there.world;
    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    add(world, &remote).await;
    let container = format!("sluice-{}-git-sync-web", world.installation());
    let member = there.of_role("member", "acct-7", "member").await;
    let path = "/api/v1/repos/web/refresh";
    let pushed = remote.push("1");
    let before = syncs(&container).await;
    let answers = join_all((0..10).map(|_| member.request(Method::POST, path, "".into()))).await;
    for answer in answers {
        let answer = answer.unwrap();
        let (status, refreshed) = (answer.status.as_u16(), answer.json());
        assert_eq!((status, &refreshed["sha"]), (200, &json!(pushed)), "{refreshed}");
        assert!(refreshed["refreshedAt"].is_string(), "{refreshed}");
    }
    let caused = syncs(&container).await - before;
    assert!((1..=2).contains(&caused), "ten refreshes caused {caused} syncs");

    let listed = member.get("/api/v1/repos").await.json();
    let listed = &listed["repositories"][0];
    assert_eq!(
        (&listed["sha"], &listed["state"], &listed["failing"]),
        (&json!(pushed), &json!("up"), &json!(false))
    );
    assert!(!listed.to_string().contains("http"), "its address is for operators: {listed}");
    let unknown = member.request(Method::POST, "/api/v1/repos/other/refresh", "".into()).await.unwrap();
    assert_eq!((unknown.status.as_u16(), &unknown.json()["code"]), (404, &json!("not_found")));

    // A container that was removed is made again.
    docker(&["rm", "--force", &container]).await;
    let pushed = remote.push("2");
    let again = member.request(Method::POST, path, "".into()).await.unwrap();
    assert_eq!((again.status.as_u16(), &again.json()["sha"]), (200, &json!(pushed)), "{}", again.text());
    remove(world, "web").await;
    there.end().await;
}

#[tokio::test]
async fn sluice_up_keeps_mirrors_running() {
    let there = Served::with("").await;
    let world = &there.world;
    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    add(world, &remote).await;
    let container = format!("sluice-{}-git-sync-web", world.installation());
    docker(&["rm", "--force", &container]).await;
    let running = || async { containers_of(&world.installation()).await };
    let is_there = |names: &Vec<String>| *names == [container.clone()];
    eventually_within(Duration::from_secs(30), "it is made again", running, is_there).await;

    fs::rename(world.path().join("remote/upstream.git"), world.path().join("remote/gone.git")).unwrap();
    let member = there.of_role("member", "acct-7", "member").await;
    let failed = member.request(Method::POST, "/api/v1/repos/web/refresh", "".into()).await.unwrap();
    let problem = failed.json();
    assert_eq!((failed.status.as_u16(), &problem["code"]), (502, &json!("repository_unreachable")));
    assert!(!problem.to_string().contains("http://"), "its address is for operators: {problem}");
    remove(world, "web").await;
    there.end().await;
}

#[tokio::test]
async fn a_slow_fetch_is_answered_with_202() {
    let there = Served::with("").await;
    let remote = MirroredRemote::serve(&there.world.path().join("remote")).await;
    add(&there.world, &remote).await;
    remote.hang();
    let member = there.of_role("member", "acct-7", "member").await;
    let begun = Instant::now();
    let answer = member.request(Method::POST, "/api/v1/repos/web/refresh", "".into()).await.unwrap();
    let expected = json!({ "name": "web", "sha": null, "refreshedAt": null });
    assert_eq!((answer.status.as_u16(), answer.json()), (202, expected));
    assert!(
        (20..30).contains(&begun.elapsed().as_secs()),
        "the wait is bounded, and shorter than a request's"
    );
    remove(&there.world, "web").await;
    there.end().await;
}
