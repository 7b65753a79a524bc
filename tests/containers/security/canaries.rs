//! Controls of the search that every world ends with: a planted secret is found in a container, and where runs are kept.

use harness::{CANARY_KEY, World, canary::assert_found, shell_agents::shell_agent};

/// The search covers its output, too.
#[tokio::test]
async fn a_secret_in_a_container_is_found() {
    // An entry with arguments that look like a secret is refused; this one does not look so.
    let agent = shell_agent(&format!("key=x{CANARY_KEY}; echo ${{key#x}} | tee /workspace/leak"), "");
    let mut world = World::with(&agent).await;
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]).await;
    assert_eq!(outcome.stdout.trim(), CANARY_KEY, "{outcome:?}");
    world.assert_nothing_left().await;
    assert_found(
        &world.canaries(),
        &[
            "what Docker is told",
            "what Docker tells",
            "-r1.1: ",
            "tree/leak",
            "stdout of sluice",
            "store/sluice.db",
        ],
    );
    world.has_planted("sluice.toml");
    // Orders are kept where runs are, and so are answers.
    world.has_planted("store/");
}
