//! Tests that a worker killed at any step of a relay leaves one push and one pull request.

use harness::{Up, eventually::eventually_within, github::GitHubRoute};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};

use super::{COMMITS, github::Hosted, relay};
use crate::recovery::survival::{LEASE, PATIENCE, ended};

#[tokio::test]
async fn a_killed_worker_leaves_one_push() {
    let mut hosted = Hosted::with(COMMITS, LEASE).await;
    assert!(hosted.world.stop_proxy().await);
    for point in Point::RELAY.into_iter().chain([Point::WorkspaceMade, Point::SettleStored]) {
        let run = format!("r-{}", point.name());
        let armed = format!("{}:kill", point.name());
        let mut up = Up::start(hosted.sluice().env("SLUICE_FAILPOINT", &armed)).await;
        let order = hosted.order(&run, &["--detach"]);
        let order: Vec<_> = order.iter().map(String::as_str).collect();
        let outcome = hosted.world.sluice().run(&order).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(up.death().await, Some(Signal::KILL.as_raw()), "{run}: the point was reached");
        let next = Up::start(hosted.sluice()).await;
        let record = ended(&hosted.world, &run).await;
        let published = || relay(&hosted.world, &run);
        let is_published = |relay: &serde_json::Value| relay["stage"] == "published";
        eventually_within(PATIENCE, "the commits are published", published, is_published).await;
        let url = hosted.host.pull_url("app", hosted.assert_one(&run));
        assert_eq!(record["answer"], format!("done\n\n{url}"), "{run}: {record:#}");
        let branch = format!("sandbox/{run}");
        let exchanges = hosted.host.github.exchanges();
        let made = exchanges.iter().filter(|exchange| {
            exchange.route == Some(GitHubRoute::MakePull) && exchange.body["head"] == branch.as_str()
        });
        assert_eq!(made.count(), 1, "{run}: it was found the second time");
        next.stop(Signal::TERM).await;
        kill_process(Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(), Signal::KILL).ok();
    }
    hosted.world.assert_nothing_left().await;
}
