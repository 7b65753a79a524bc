//! Tests that runs on one repository at the same time mix up nothing.

use futures_util::future::join_all;
use harness::Up;
use rustix::process::Signal;

use super::github::Hosted;
use crate::recovery::survival::ended;

/// Runs at the same time.
const RUNS: usize = 10;

#[tokio::test]
async fn parallel_runs_have_own_pull_requests() {
    let script = "git branch --show-current; echo $RUN_ID >> a.txt; git commit --quiet -am \"Change of $RUN_ID\"; \
        echo \"Text of $RUN_ID\" > /workspace/.cogni/pr.md; echo done $RUN_ID";
    let settings = format!("[worker]\nmax_concurrent_runs = {RUNS}\n");
    let mut hosted = Hosted::with(script, &settings).await;
    assert!(hosted.world.stop_proxy().await);
    let up = Up::start(hosted.sluice()).await;
    let names: Vec<_> = (0..RUNS).map(|number| format!("r{number}")).collect();
    let ordered = names.iter().map(|name| async {
        let order = hosted.order(name, &["--detach"]);
        let order: Vec<_> = order.iter().map(String::as_str).collect();
        hosted.world.sluice().run(&order).await
    });
    for outcome in join_all(ordered).await {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let records = join_all(names.iter().map(|name| ended(&hosted.world, name))).await;
    for (name, record) in names.iter().zip(&records) {
        let number = hosted.assert_one(name);
        let url = hosted.host.pull_url("app", number);
        assert_eq!(record["answer"], format!("sandbox/{name}\ndone {name}\n\n{url}"), "{record:#}");
        let pull = &hosted.host.github.pulls()[number - 1];
        assert_eq!(pull.title, format!("Text of {name}"), "{pull:?}");
        assert!(pull.body.contains(&format!("in run `{name}`")), "{pull:?}");
        assert_eq!(hosted.remote.content(&format!("sandbox/{name}"), "a.txt"), format!("text\n{name}\n"));
    }
    let mut branches =
        names.iter().map(|name| format!("sandbox/{name} Change of {name}")).collect::<Vec<_>>();
    branches.insert(0, "main first".to_owned());
    assert_eq!(hosted.remote.branches(), branches);
    assert_eq!(hosted.host.github.pulls().len(), RUNS);
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}
