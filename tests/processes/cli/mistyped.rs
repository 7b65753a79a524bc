//! Tests that an order with a mistyped name is refused before a run is stored, and that the close name is offered.

use harness::{Outcome, World};
use serde_json::json;

const CONFIG: &str = "[agents.'team:reviewer']\nargv = ['a']\nimage = 'no-such-image:1'\n\
    [billing]\nfree_models = ['gratis-1']\n[prices.unlisted]\ninput = '1'\noutput = '2'\n";

async fn refused(world: &World, arguments: &[&str]) -> String {
    let Outcome { code, stdout, stderr } = world.sluice().run(arguments).await;
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
    stderr
}

async fn count_runs(world: &World) -> usize {
    let listed = world.sluice().run(&["runs", "ls", "--json"]).await.result();
    listed["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_mistyped_agent_is_refused_with_its_name() {
    let world = World::with(CONFIG).await;
    for command in
        [&["run", "--detach", "--agent", "team:reviwer", "q"][..], &["chat", "--agent", "team:reviwer"]]
    {
        let said = refused(&world, command).await;
        assert!(said.contains("no agent team:reviwer (did you mean team:reviewer?); there are: "), "{said}");
        assert!(said.contains("`sluice agents ls`"), "{said}");
    }
    let ships = refused(&world, &["agents", "add", "claud-code"]).await;
    assert!(ships.contains("no agent claud-code (did you mean claude-code?)"), "{ships}");
    let far = refused(&world, &["run", "--agent", "no:one", "q"]).await;
    assert!(!far.contains("did you mean"), "the control: {far}");
    assert_eq!(count_runs(&world).await, 0);
}

#[tokio::test]
async fn a_mistyped_model_is_refused_with_its_name() {
    let world = World::with(CONFIG).await;
    for command in [&["run", "--detach", "--model", "fkae", "q"][..], &["chat", "--model", "fkae"]] {
        let said = refused(&world, command).await;
        assert!(said.contains("the upstream does not offer model fkae (did you mean fake?)"), "{said}");
        assert!(said.contains("`sluice models`"), "{said}");
    }
    let json = world.sluice().run(&["run", "--json", "--model", "fkae", "q"]).await;
    assert_eq!((json.code, &json.result()["error"]["code"]), (Some(2), &json!("usage")), "{json:?}");
    assert_eq!(count_runs(&world).await, 0);
}

/// A model may exist that the upstream lists by a pattern or the configuration names, that is far from all of them, or that
/// is another version of one; any may while no proxy can tell.
#[tokio::test]
async fn a_model_that_may_exist_is_ordered() {
    let mut world = World::with(CONFIG).await;
    let submit = async |world: &World, model: &str| {
        let outcome = world.sluice().run(&["run", "--detach", "--model", model, "q"]).await;
        assert_eq!(outcome.code, Some(0), "{model}: {outcome:?}");
    };
    for model in ["fake", "fake-words7", "unlisted", "gratis-1", "gratis-2", "claude"] {
        submit(&world, model).await;
    }
    refused(&world, &["run", "--detach", "--model", "unlistd", "q"]).await;
    assert!(world.stop_proxy().await);
    submit(&world, "unlistd").await;
    assert_eq!(count_runs(&world).await, 7);
}
