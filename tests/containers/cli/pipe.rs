//! Tests that a command ends quietly when the reader of its output has left.

use harness::{Outcome, World};

use crate::sandbox::{run, world_with};

/// Exit code of a command after its reader has left, as a shell reports it of a program that SIGPIPE killed.
const CLOSED_PIPE: i32 = 141;

/// Runs `arguments` with a standard output that its reader has left.
async fn unread(world: &World, arguments: &[&str]) -> Outcome {
    world.sluice().unread().spawn(arguments).wait_with_output().await.unwrap().into()
}

#[tokio::test]
async fn a_closed_pipe_ends_a_command_quietly() {
    let world = world_with("echo ran").await;
    assert_eq!(run(&world).await.code, Some(0));
    world.run("r2", "acct-1").await.agent.chat("fake").await;
    world.records(1).await;
    for arguments in [
        &["runs", "ls", "-n", "1000"][..],
        &["runs", "show", "r1"],
        &["runs", "wait", "r1"],
        &["runs", "events", "r1"],
        &["usage"],
        &["metrics"],
        &["audit", "tail"],
        &["audit", "export", "--format", "csv"],
        &["audit", "verify"],
        &["config", "check"],
        &["config", "schema"],
        &["api", "openapi"],
        &["completions", "bash"],
    ] {
        let read = world.sluice().run(arguments).await;
        assert!(read.code == Some(0) && !read.stdout.is_empty(), "control: {arguments:?}: {read:?}");
        let left = unread(&world, arguments).await;
        assert_eq!((left.code, left.stderr.as_str()), (Some(CLOSED_PIPE), ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_run_without_a_reader_goes_on() {
    let world = world_with("echo ran").await;
    let left = unread(&world, &["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]).await;
    assert_eq!((left.code, left.stderr.as_str()), (Some(CLOSED_PIPE), ""));
    let shown = world.sluice().run(&["runs", "show", "r1", "--json"]).await.result();
    assert_eq!((&shown["state"], &shown["answer"]), (&"succeeded".into(), &"ran".into()), "{shown}");
    world.assert_nothing_left().await;
}
