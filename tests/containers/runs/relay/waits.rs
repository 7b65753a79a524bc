//! Tests that a remote which never answers holds up neither a stop nor a cancel.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use harness::{
    GitHost, Up,
    eventually::eventually_within,
    git_server::{Behaviour, GitServer, processes_with},
};
use http::StatusCode;
use rustix::process::Signal;
use serde_json::Value;

use super::{COMMITS, github::Hosted, relay};
use crate::recovery::survival::{PATIENCE, ended, state};

/// Longest time to the end of a wait; much shorter than `relay.wait`.
const END_TIMEOUT: Duration = Duration::from_secs(45);

impl Hosted {
    /// Orders `run`, and waits until its push hangs.
    async fn hang(&self, run: &str) {
        self.host.git.behave_to_pushes(Behaviour::Hangs);
        let order = self.order(run, &["--detach"]);
        let order: Vec<_> = order.iter().map(String::as_str).collect();
        assert_eq!(self.world.sluice().run(&order).await.code, Some(0));
        let collecting = || state(&self.world, run);
        eventually_within(PATIENCE, "the agent has ended", collecting, |state| state == "collecting").await;
        let accepted = || relay(&self.world, run);
        eventually_within(PATIENCE, "it is judged", accepted, |relay| relay["stage"] == "accepted").await;
        let gits = || async { self.gits() };
        eventually_within(PATIENCE, "git pushes", gits, |gits| !gits.is_empty()).await;
    }

    /// Returns the processes that speak with the host's git server.
    fn gits(&self) -> Vec<String> {
        processes_with(&format!("SLUICE_GIT_ORIGIN={}", self.host.git.origin))
    }
}

#[tokio::test]
async fn a_hanging_push_delays_no_stop_or_cancel() {
    let mut hosted = Hosted::with(COMMITS, "").await;
    assert!(hosted.world.stop_proxy().await);
    let up = Up::start(hosted.sluice()).await;
    hosted.hang("r1").await;
    let began = Instant::now();
    assert_eq!(hosted.world.sluice().run(&["runs", "cancel", "r1"]).await.code, Some(0));
    let record = ended(&hosted.world, "r1").await;
    assert!(began.elapsed() < END_TIMEOUT, "{:?}", began.elapsed());
    assert_eq!((&record["state"], &record["answer"]), (&"succeeded".into(), &"done".into()), "{record:#}");
    assert_eq!(relay(&hosted.world, "r1").await["stage"], "accepted");
    let events = hosted.world.sluice().run(&["runs", "events", "r1", "--json"]).await.events();
    let stage = events.iter().find(|event| event["type"] == "commits").map(|event| &event["stage"]);
    assert_eq!(stage, Some(&"accepted".into()), "{events:#?}");

    hosted.hang("r2").await;
    let began = Instant::now();
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
    assert!(began.elapsed() < END_TIMEOUT, "{:?}", began.elapsed());
    assert_eq!(hosted.gits(), [""; 0], "no git goes on");
    assert_eq!(relay(&hosted.world, "r2").await["stage"], "accepted");

    hosted.host.git.behave(Behaviour::Serves);
    let next = Up::start(hosted.sluice()).await;
    let record = ended(&hosted.world, "r2").await;
    let url = hosted.host.pull_url("app", hosted.assert_one("r2"));
    assert_eq!(record["answer"], format!("done\n\n{url}"), "{record:#}");
    assert_eq!(hosted.sluice().run(&["git", "push", "r1"]).await.code, Some(0));
    hosted.assert_one("r1");
    next.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}

/// A host that never answers keeps no commits for another host back.
#[tokio::test]
async fn a_hanging_host_holds_no_other_back() {
    let mut hosted = Hosted::with(COMMITS, "[relay]\nwait = '1s'\n").await;
    assert!(hosted.world.stop_proxy().await);
    let other = GitHost::start().await;
    let remote = other.repository("lib");
    let open = GitServer::start_open(Ipv4Addr::LOCALHOST.into(), other.root().to_owned()).await;
    let up = Up::start(hosted.sluice()).await;
    hosted.host.git.behave_to_pushes(Behaviour::Hangs);
    let run = hosted.run("r1", &[]).await;
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "done"), "without its pull request: {run:?}");
    let gits = || async { hosted.gits() };
    eventually_within(PATIENCE, "git pushes again, without the run", gits, |gits| !gits.is_empty()).await;

    open.behave_to_pushes(Behaviour::Fails(StatusCode::SERVICE_UNAVAILABLE));
    let url = format!("{}/octo/lib", open.origin);
    let order = ["run", "--agent", "test:sh", "--run-id", "r2", "--repo", &url, "q"];
    assert_eq!(hosted.sluice().run(&order).await.code, Some(0));
    let found = || relay(&hosted.world, "r2");
    let refused = |relay: &Value| relay["stage"] == "accepted";
    eventually_within(PATIENCE, "control: the other host does not take it yet", found, refused).await;
    open.behave(Behaviour::Serves);
    eventually_within(PATIENCE, "it is published", found, |relay| relay["stage"] == "published").await;
    assert_eq!(remote.pushes("sandbox/r2"), 1);
    assert_ne!(hosted.gits(), [""; 0], "the first one still hangs");
    assert_eq!(relay(&hosted.world, "r1").await["stage"], "accepted");

    hosted.host.git.behave(Behaviour::Serves);
    up.stop(Signal::TERM).await;
    assert_eq!(hosted.sluice().run(&["git", "push", "r1"]).await.code, Some(0));
    hosted.assert_one("r1");
    hosted.world.assert_nothing_left().await;
}
