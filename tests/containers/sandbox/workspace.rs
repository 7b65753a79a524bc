//! Tests the workspace, seen from both sides.

use std::{fs, os::unix::fs::MetadataExt};

use harness::{World, eventually};

use super::{run, shell_agent};

#[tokio::test]
async fn host_and_agent_share_the_workspace() {
    let script = "echo from inside > /workspace/note; while [ ! -e /workspace/reply ]; do sleep 0.05; done; cat /workspace/reply";
    let world = World::with(&shell_agent(script, "")).await;
    let outside = async {
        let workspace = world.workspace("r1").await;
        let note = workspace.join("note");
        eventually(
            "the note is there",
            || async { fs::read_to_string(&note).unwrap_or_default() },
            |note| note == "from inside\n",
        )
        .await;
        for path in [&workspace, &note] {
            let found = fs::metadata(path).unwrap();
            assert_eq!((found.uid(), found.gid()), (1001, 1001), "{}", path.display());
        }
        fs::write(workspace.join("reply"), "from outside").unwrap();
    };
    let (outcome, ()) = tokio::join!(run(&world), outside);
    assert_eq!(outcome.result()["text"], "from outside", "{outcome:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn the_question_arrives_as_it_was_asked() {
    let world = World::with(&shell_agent("jq -j '.[0].content' /workspace/.cogni/messages.json", "")).await;
    let question = "quotes \" ' ` $(id) \\ line\nfeeds\ttabs 你好 👋";
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", "--json", question]).await;
    assert_eq!(outcome.result()["stdout"]["text"], question, "{outcome:?}");
}
