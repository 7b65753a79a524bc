//! `sluice models` and `sluice config show`: what can be asked, and which settings hold.

use bench::upstream::ScriptedUpstream;
use harness::{World, key_rejecting_upstream::KeyRejectingUpstream};

#[tokio::test]
async fn models_are_listed_with_price_and_agents() {
    let world = World::with("[prices.fake-cost]\ninput = '1'\noutput = '2'\n").await;
    let listed = world.sluice().run(&["models", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let report = listed.result();
    let models = report["models"].as_array().unwrap();
    let row = |name: &str| models.iter().find(|model| model["model"] == name).unwrap();
    assert_eq!((&row("fake")["default"], &row("fake")["price"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(row("fake")["agents"][0], "sandbox:agent");
    assert_eq!(row("fake-cost")["price"]["output"], "$2.00");
    let shown = world.sluice().run(&["models"]).await.stdout;
    assert!(shown.starts_with("MODEL "), "{shown}");
}

#[tokio::test]
async fn models_says_what_is_down_and_the_cure() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let no_proxy = world.sluice().run(&["models"]).await;
    assert_eq!(no_proxy.code, Some(69), "{no_proxy:?}");
    assert!(no_proxy.stderr.contains("start one with `sluice up`"), "{no_proxy:?}");
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let refused = world.sluice().run(&["models"]).await;
    assert_eq!(refused.code, Some(69), "{refused:?}");
    assert!(
        refused.stderr.contains("refuses the key in ") && refused.stderr.contains("sluice reload"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn config_show_names_the_source_of_each_value() {
    let world = World::start().await;
    let show = async |arguments: &[&str]| {
        let sluice = world.sluice().env("SLUICE_PROXY_DRAIN_TIMEOUT", "9s");
        sluice.run(&[&["config", "show", "--set", "worker.max_queued=7"], arguments].concat()).await
    };
    let changed = show(&["--changed"]).await;
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let line = |key: &str| changed.stdout.lines().find(|line| line.starts_with(key)).map(str::to_owned);
    let file = format!("{}:2", world.config().display());
    assert!(line("upstream.base_url ").unwrap().ends_with(&file), "{}", changed.stdout);
    let drain = line("proxy.drain_timeout ").unwrap();
    assert!(drain.contains("\"9s\"") && drain.ends_with("SLUICE_PROXY_DRAIN_TIMEOUT"), "{drain}");
    assert!(line("worker.max_queued ").unwrap().ends_with("--set worker.max_queued=7"), "{}", changed.stdout);
    assert_eq!(line("journal.retention "), None, "it has its default");
    let section = show(&["journal", "--json"]).await.result();
    let settings = section["settings"].as_array().unwrap();
    assert!(settings.iter().all(|setting| setting["key"].as_str().unwrap().starts_with("journal.")));
    assert!(settings.iter().any(|setting| setting["source"]["kind"] == "default"), "{section}");
    let unknown = show(&["colours"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("sections: upstream, proxy"), "{unknown:?}");
}
