//! Tests the official SDKs in their default settings, while proxies are killed and started again by `sluice up`. Their
//! own retries are enough while the answer of a call has not begun. Calls pass through the bridge of a sandbox.

use harness::{Bridge, Sdk, Up, World, eventually};
use platform_runtime::task;
use rustix::process::{Pid, Signal, kill_process};

/// Calls of each program.
const CALLS: usize = 12;

#[tokio::test]
async fn sdks_outlive_proxies_that_are_killed() {
    for sdk in [Sdk::Python, Sdk::Node] {
        let mut world = World::start().await;
        assert!(world.stop_proxy().await);
        let mut up = Up::start(world.sluice()).await;
        let run = world.run("r1", "acct-1").await;
        let bridge = Bridge::to(&run.socket).await;
        let url = bridge.base_url();
        let calling = task::spawn("sdk", async move { sdk.calls(&url, CALLS).await });
        for calls in [3, 7] {
            let made = || async { world.upstream.ledger().len() };
            eventually("it makes calls", made, |made| *made >= calls).await;
            let killed = up.proxy_pid;
            kill_process(Pid::from_raw(killed.cast_signed()).unwrap(), Signal::KILL).unwrap();
            let pid = || async { world.control.health().await.map_or(killed, |health| health.pid) };
            up.proxy_pid = eventually("another proxy answers", pid, |pid| *pid != killed).await;
        }
        let calls = calling.await.unwrap();
        let failed: Vec<_> = calls.iter().filter(|call| call["ok"] != true).collect();
        assert!(calls.len() == CALLS && failed.is_empty(), "{sdk:?}: {failed:?} of {calls:?}");
        let slowest = calls.iter().filter_map(|call| call["seconds"].as_f64()).fold(0.0, f64::max);
        eprintln!("{sdk:?}: all {CALLS} calls succeeded over two kills, the slowest took {slowest} s");
        // A kill that no call noticed would show nothing.
        assert!(world.upstream.ledger().len() > CALLS || slowest > 0.4, "{sdk:?}: {calls:?}");
        assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
    }
}
