//! Tests that a worker killed at any step of a relay leaves one push.

use harness::{GitRemote, Up, World};
use runner_model::failpoint::Point;
use rustix::process::{Pid, Signal, kill_process};

use super::{COMMITS, relay};
use crate::{
    recovery::survival::{LEASE, ended},
    sandbox::shell_agent,
};

#[tokio::test]
async fn a_killed_worker_leaves_one_push() {
    let settings = format!("{}{LEASE}[relay]\nwait = '2s'\n", shell_agent(COMMITS, ""));
    let mut world = World::with(&settings).await;
    assert!(world.stop_proxy().await);
    let remote = GitRemote::in_world(&world, "app.git");
    let steps = Point::RELAY.into_iter().filter(|point| *point != Point::PullRequestMade);
    for point in steps.chain([Point::WorkspaceMade, Point::SettleStored]) {
        let run = format!("r-{}", point.name());
        let armed = format!("{}:kill", point.name());
        let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", &armed)).await;
        let url = remote.url();
        let order = ["run", "--detach", "--agent", "test:sh", "--run-id", &run, "--repo", &url, "q"];
        let outcome = world.sluice().run(&order).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        up.child.wait().await.unwrap();
        let next = Up::start(world.sluice()).await;
        let record = ended(&world, &run).await;
        assert_eq!(record["answer"], "done", "{run}: {record:#}");
        let published = async || relay(&world, &run).await["stage"].clone();
        harness::eventually("the commits are published", published, |stage| stage == "published").await;
        let pushes = remote.git(&["reflog", "show", "--format=%gs", &format!("sandbox/{run}")]);
        assert_eq!(pushes.lines().count(), 1, "{run}: {pushes}");
        next.stop(Signal::TERM).await;
        kill_process(Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(), Signal::KILL).ok();
    }
    world.assert_nothing_left().await;
}
