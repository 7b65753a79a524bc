//! Tests that output of an agent or a model cannot drive the terminal that shows it.

use harness::{Outcome, World};

use crate::sandbox::{shell_agent, world_with};

/// A title, a colour, a clipboard, and text that runs backwards, with the part of it that may be shown.
const HOSTILE: &str =
    "\x1b]0;title\x07a \x1b[31mred\x1b[0m \x1b]52;c;ZXZpbA==\x1b\\word \u{202e}gnp.exe\u{9b}2J";
const HARMLESS: &str = "a red word gnp.exe";
/// The same for bash: nothing of it is taken literally by `printf '%b'`.
const PRINTED: &str =
    r"\033]0;title\007a \033[31mred\033[0m \033]52;c;ZXZpbA==\033\\word \u202egnp.exe\u009b2J";

async fn run(world: &World, flags: &[&str]) -> Outcome {
    world.sluice().run(&[&["run", "--agent", "test:sh"], flags, &["q"]].concat()).await
}

/// Escapes pass only with `--raw`.
#[tokio::test]
async fn escapes_of_an_agent_are_removed() {
    let world = world_with(&format!("printf '%b\\n' '{PRINTED}' | tee /dev/stderr")).await;
    let safe = run(&world, &[]).await;
    let expected = format!("{HARMLESS}\n");
    assert_eq!((safe.code, &safe.stdout, &safe.stderr), (Some(0), &expected, &expected));
    // Control: they were there.
    let raw = run(&world, &["--raw"]).await;
    let expected = format!("{HOSTILE}\n");
    assert_eq!((raw.code, &raw.stdout, &raw.stderr), (Some(0), &expected, &expected));
}

#[tokio::test]
async fn escapes_in_a_reason_to_fail_are_removed() {
    let world = World::with(&shell_agent(&format!("printf '%b\\n' '{PRINTED}' >&2; exit 1"), "")).await;
    let outcome = run(&world, &["--run-id", "r1"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let said = outcome.stderr.lines().find(|line| line.contains("failed")).unwrap();
    assert_eq!(
        said,
        format!("sluice: r1 failed (container_failed): the agent ended with exit code 1: {HARMLESS}")
    );
}

#[tokio::test]
async fn escapes_of_a_stream_are_removed() {
    let world = World::start().await;
    let arguments = ["run", "--model", "fake-echo", HOSTILE];
    let safe = world.sluice().on_terminal(&arguments).await;
    assert_eq!(safe.code, Some(0), "{safe:?}");
    assert_eq!(safe.text().matches(HARMLESS).count(), 1, "{safe:?}");
    for sequence in ["\x1b]", "\x1b[31m", "\u{202e}", "\u{9b}"] {
        assert!(!safe.text().contains(sequence), "{sequence:?} is in {safe:?}");
    }
    // Control: they were there.
    let raw = world.sluice().on_terminal(&[&arguments[..], &["--raw"]].concat()).await;
    assert!(raw.text().contains(HOSTILE), "{raw:?}");
}

#[tokio::test]
async fn an_unfinished_escape_hides_no_answer() {
    let ask = r#"curl --silent --output /dev/null http://localhost:8080/v1/chat/completions --json '
        { "model": "fake-echo", "stream": true, "messages": [{ "role": "user", "content": "begun \u001b]0;title" }] }'"#;
    let world = World::with(&shell_agent(&format!("{ask}; echo the answer"), "stream = 'answer'")).await;
    let shown = world.sluice().on_terminal(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.text().contains("begun "), "the model was seen to stream: {shown:?}");
    assert!(shown.text().contains("the answer"), "{shown:?}");
}
