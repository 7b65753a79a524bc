//! Tests that the events of ended runs are kept for a while, and then removed.

use harness::{Up, World, eventually::eventually_within};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    recovery::survival::{PATIENCE, record},
    sandbox::shell_agent,
};

#[tokio::test]
async fn old_events_expire_and_show_says_so() {
    let agent = shell_agent("echo hello; echo why >&2", "");
    let mut world =
        World::with(&format!("event_retention_max_runs = 1\n{agent}[worker]\ngc_interval = '1s'\n")).await;
    for run in ["r1", "r2"] {
        let ran = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", run, "q"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let sluice = async |arguments: &[&str]| world.sluice().run(arguments).await;
    let whole = sluice(&["runs", "events", "r1"]).await.events();
    let logs = sluice(&["runs", "logs", "r1"]).await;
    assert_eq!((logs.code, logs.stdout.as_str()), (Some(0), "hello\n"), "control: nobody pruned yet");
    let before = record(&world, "r1").await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    let pruned = |record: &Value| record["pruned_events"] != json!(0);
    let after = eventually_within(PATIENCE, "it is pruned", || record(&world, "r1"), pruned).await;

    let gone = after["pruned_events"].as_u64().unwrap();
    let rest = &whole[usize::try_from(gone).unwrap()..];
    let sluice = async |arguments: &[&str]| world.sluice().run(arguments).await;
    let said = json!({ "seq": gone, "type": "pruned", "count": gone });
    assert_eq!(sluice(&["runs", "events", "r1"]).await.events(), [&[said], rest].concat());
    let kinds: Vec<_> = rest.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["assistant_final", "usage_report", "done"]);
    let said = json!({ "seq": gone, "type": "pruned", "count": gone - 2 });
    let from = sluice(&["runs", "events", "-f", "--after", "2", "r1"]).await.events();
    assert_eq!(from, [&[said], rest].concat(), "from a point, what is left behind it");
    assert_eq!(sluice(&["runs", "events", "--after", &gone.to_string(), "r1"]).await.events(), rest);
    let logs = sluice(&["runs", "logs", "r1"]).await;
    assert_eq!((logs.code, logs.stdout.as_str()), (Some(1), ""));
    assert!(logs.stderr.contains("the output of r1 has been pruned"), "{}", logs.stderr);
    let shown = sluice(&["runs", "show", "r1"]).await.stdout;
    assert!(shown.contains(&format!("{gone} earlier events pruned")), "{shown}");
    for kept in ["run_id", "state", "usage", "answer", "ended_ms", "order"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let last = sluice(&["runs", "logs", "r2"]).await;
    assert_eq!((last.code, last.stdout.as_str()), (Some(0), "hello\n"), "of the last run all is kept");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
