//! Tests that a run under a limit of cost fails before a container exists if its model has no price.

use harness::{Up, World, docker::Starts};
use rustix::process::Signal;
use serde_json::json;

use crate::{recovery::survival::ended, sandbox::shell_agent};

const CONFIG: &str = "\
[prices.priced]
input = '1'
output = '2'
[accounts.local]
requests = 100
";

/// The limit is set while the run waits, so its submission could not refuse it.
#[tokio::test]
async fn an_unpriced_queued_run_gets_no_container() {
    let agent = shell_agent("echo ran", "run_timeout = '60s'");
    let mut world = World::with(&format!("{agent}[worker]\nlease_duration = '2s'\n{CONFIG}")).await;
    assert!(world.stop_proxy().await);
    let submit = async |run: &str, more: &[&str]| {
        let arguments = ["run", "--detach", "--json", "--agent", "test:sh", "--run-id", run];
        world.sluice().run(&[&arguments, more, &["q"]].concat()).await
    };
    for (run, model) in [("r-fake", "fake"), ("r-priced", "priced")] {
        assert_eq!(submit(run, &["--model", model]).await.code, Some(0));
    }
    world.reconfigure("requests = 100", "cost = '1'");
    let refused = submit("r-late", &["--model", "fake"]).await;
    assert_eq!((refused.code, &refused.result()["error"]["code"]), (Some(2), &json!("model_unpriced")));

    let starts = Starts::follow(&world.installation(), &world.path().join("starts")).await;
    let up = Up::start(world.sluice()).await;
    let failed = ended(&world, "r-fake").await;
    assert_eq!(failed["error"]["code"], "model_unpriced", "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("account local has a limit"), "{failed}");
    assert_eq!(failed["resources"], json!([]), "{failed}");
    assert_eq!(ended(&world, "r-priced").await["state"], "succeeded", "the control");
    assert_eq!((starts.of("r-fake"), starts.of("r-priced")), (0, 1));
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
