//! Tests the HTTP API of `sluice up`: what it reports to an application, and that it reports nothing to others.

mod again;
mod answer_reader;
mod balances;
mod bodies;
mod calls;
mod changes;
pub(super) mod chat;
mod dashboard;
mod events;
mod fairness;
mod files;
mod host;
mod kills;
mod logs;
mod notified;
mod openai;
pub(super) mod orders;
mod overview;
mod reloads;
mod removal;
mod sessions;
mod spending;
mod thread_pages;
mod tls;
mod walk;

use std::{fs, time::Duration};

use harness::{Agent, eventually, served::served};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const REVIEWER: &str = "[agents.'team:reviewer']\nargv = ['node', '/agent/run.mjs']\nname = 'Reviewer'\nimage = 'no-such-image:1'\n";

async fn list(api: &Agent) -> Value {
    let answer = api.get("/api/v1/ai/agents").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/json");
    let mut list: Value = answer.json();
    // Whether OpenClaw's image is here, is another test's question.
    list["agents"].as_array_mut().unwrap().retain(|agent| agent["agentId"] != "sandbox:openclaw");
    list
}

fn ids(list: &Value) -> Vec<&str> {
    list["agents"].as_array().unwrap().iter().map(|agent| agent["agentId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_catalogue_lists_runnable_agents() {
    let (_world, up, api) = served("", REVIEWER).await;
    let shipped = json!({
        "agentId": "sandbox:agent",
        "graphId": "sandbox:agent",
        "name": "Sandbox Agent",
        "description": "LLM agent in an isolated container",
    });
    let expected = json!({ "agents": [shipped], "defaultAgentId": "sandbox:agent" });
    assert_eq!(list(&api).await, expected);
    for (method, path, status, code) in [
        (Method::GET, "/api/v1", 404, "not_found"),
        (Method::GET, "/api/v1/ai/agents/", 404, "not_found"),
        (Method::POST, "/api/v1/ai/agents", 405, "method_not_allowed"),
    ] {
        let answer = api.request(method.clone(), path, "{}".into()).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["code"]),
            (status, &json!(code)),
            "{method} {path}"
        );
    }
    assert_eq!(up.stop(Signal::TERM).await, (Some(0), "stopped".to_owned()));
    assert!(api.connect().await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_page_that_has_a_browser_ask_is_told_nothing() {
    let (_world, up, api) = served("", "").await;
    let ask = async |host: &str| {
        let mut wire = api.connect().await.unwrap();
        let request = format!("GET /api/v1/ai/agents HTTP/1.1\r\n{host}connection: close\r\n\r\n");
        wire.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        wire.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let two = "host: localhost\r\nhost: attacker.example\r\n";
    for host in ["host: attacker.example:4180\r\n", "host: localhost.attacker.example\r\n", "", two] {
        let answer = ask(host).await;
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("sandbox:agent"), "{host}: {answer}");
    }
    assert!(ask("host: localhost:4180\r\n").await.contains("sandbox:agent"), "control");
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn silent_clients_are_cut_for_others() {
    let (_world, up, api) = served("", "").await;
    let mut silent = Vec::new();
    // More than are accepted at a time.
    for _ in 0..300 {
        let mut wire = api.connect().await.unwrap();
        wire.write_all(b"GET /api").await.unwrap();
        silent.push(wire);
    }
    // Sooner than connections are cut that take too long in all.
    let answer = tokio::time::timeout(Duration::from_secs(25), list(&api)).await;
    assert_eq!(ids(&answer.expect("it is answered")), ["sandbox:agent"]);
    drop(silent);
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_reload_of_agents_is_all_or_nothing() {
    let (world, up, api) = served("", "").await;
    assert_eq!(ids(&list(&api).await), ["sandbox:agent"]);
    let hangup =
        || kill_process(Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap(), Signal::HUP).unwrap();
    // Its proxy logs there, too.
    let logged = async |what: &str| {
        let log = || async { fs::read_to_string(world.path().join("up.log")).unwrap() };
        eventually(what, log, |log| log.contains(what)).await;
    };
    let good = fs::read_to_string(world.config()).unwrap();
    let added = format!(
        "{good}\n[agents.'team:second']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nname = 'Second'\n{REVIEWER}"
    );
    fs::write(world.config(), &added).unwrap();
    hangup();
    let listed = || async { ids(&list(&api).await).join(" ") };
    eventually("the new one is listed", listed, |ids| ids == "sandbox:agent team:second").await;

    // With a mistake anywhere, nothing changes: not for `sluice up`, nor for its proxy.
    let mistaken = good.replace("drain_timeout = '2s'", "drain_timeout = '3s'")
        + "[agents.'team:third']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmode = 'x'\ndisk = 'y'\n";
    fs::write(world.config(), mistaken).unwrap();
    hangup();
    logged("not reloaded").await;
    logged("the configuration has 2 errors").await;
    assert_eq!(listed().await, "sandbox:agent team:second");
    fs::write(world.config(), &good).unwrap();
    let reload = async || world.sluice().run(&["reload"]).await.stdout;
    let changed = "changed   agents.team:reviewer\nchanged   agents.team:second\n";
    assert_eq!(reload().await, changed, "no SIGHUP is needed");
    eventually("the old ones are listed", listed, |ids| ids == "sandbox:agent").await;
    assert_eq!(reload().await, "nothing has changed\n", "control");

    // A change that the proxy refuses is refused here, too; a change that needs a restart is named.
    fs::write(world.config(), added.replace("threads = 2", "threads = 3").replace("'Second'", "'Other'"))
        .unwrap();
    hangup();
    logged("proxy.threads needs a restart").await;
    assert!(!list(&api).await.to_string().contains("Other"));
    fs::write(world.config(), &added).unwrap();
    hangup();
    eventually("it is listed again", listed, |ids| ids == "sandbox:agent team:second").await;
    fs::write(world.config(), format!("{good}\n[worker]\nmax_concurrent_runs = 3\n")).unwrap();
    hangup();
    eventually("the old ones are listed", listed, |ids| ids == "sandbox:agent").await;
    logged("worker.max_concurrent_runs").await;
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}

#[tokio::test]
async fn a_taken_or_public_address_is_refused() {
    let (world, up, api) = served("", "").await;
    drop(api);
    let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://")).unwrap().to_owned();
    let second = world.sluice().run(&["up", "--set", &format!("api.listen={address}")]).await;
    assert_eq!(second.code, Some(69), "{second:?}");
    assert!(second.stderr.contains(&format!("api.listen {address} cannot be listened on")), "{second:?}");
    for address in ["0.0.0.0:4180", "[::]:4180", "10.0.0.1:4180"] {
        let refused =
            world.sluice().run(&["config", "check", "--set", &format!("api.listen={address}")]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("is not on the loopback"), "{refused:?}");
        let set = format!("proxy.listen={address}");
        let refused = world.sluice().run(&["config", "check", "--set", &set]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("`listen_plaintext = true`"), "{refused:?}");
        let accepted = ["config", "check", "--set", &set, "--set", "proxy.listen_plaintext=true"];
        assert_eq!(world.sluice().run(&accepted).await.code, Some(0), "control");
    }
    up.stop(Signal::TERM).await;
}
