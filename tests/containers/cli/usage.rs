//! Tests the list of agents.

use harness::World;

const REVIEWER: &str = "[agents.'team:reviewer']\nargv = ['node', '/agent/run.mjs']\nname = 'Reviewer'\ndescription = 'reads diffs'\nimage = 'no-such-image:1'\n";

#[tokio::test]
async fn agents_are_listed_with_those_that_cannot_run() {
    let world = World::with(REVIEWER).await;
    let outcome = world.sluice().run(&["agents"]).await;
    // Whether OpenClaw's image is here, is another test's question.
    let lines: Vec<_> = outcome.stdout.lines().filter(|line| !line.starts_with("sandbox:openclaw")).collect();
    assert_eq!((outcome.code, lines.len()), (Some(0), 5), "{outcome:?}");
    assert!(lines[1].contains("sandbox:agent") && lines[1].contains("2m, 512 MiB"), "{}", outcome.stdout);
    assert!(lines[3].starts_with("CANNOT RUN"), "{}", outcome.stdout);
    assert!(
        lines[4].contains("team:reviewer") && lines[4].contains("image no-such-image:1 is not on this host"),
        "{}",
        outcome.stdout
    );
    assert_eq!(world.sluice().run(&["agents", "ls"]).await.stdout, outcome.stdout);

    let outcome = world.sluice().run(&["agents", "ls", "--set", "sandbox.docker_socket=/nowhere"]).await;
    assert_eq!(outcome.code, Some(0), "a list needs no Docker: {outcome:?}");
    assert_eq!(outcome.stdout.matches("Docker does not answer").count(), 3, "{}", outcome.stdout);
}
