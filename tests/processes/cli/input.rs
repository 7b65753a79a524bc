//! Tests that input that cannot be right is refused, with one exit code and before anything is created.

use std::fs::{self, File};

use harness::{Outcome, World, private_file};
use serde_json::{Value, json};

use harness::shell_agents::shell_agent;

/// Runs `arguments` with `stdin` as standard input.
async fn given(world: &World, stdin: &[u8], arguments: &[&str]) -> Outcome {
    let file = world.path().join("stdin");
    fs::write(&file, stdin).unwrap();
    world.sluice().stdin(File::open(file).unwrap()).run(arguments).await
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_refused() {
    let world = World::with(&shell_agent("true", "model = 'two words'")).await;
    let refusals: [(&[u8], &[&str], &str); 8] = [
        (b"", &["run", ""], "the question is empty"),
        (b"", &["run", " \n"], "the question is empty"),
        (b"", &["run", "-"], "the question is empty"),
        (b"caf\xe9?", &["run", "-"], "byte 4, 0xe9"),
        (b"", &["run", "--model", "", "q"], "is not a model's name"),
        (b"", &["run", "--model", "a\nb", "q"], "is not a model's name"),
        (b"", &["run", "--agent", "test:sh", "q"], "`two words` is not a model's name"),
        (b"", &["run", "--total-tokens", "-5", "q"], "invalid value '-5'"),
    ];
    for (stdin, arguments, words) in refusals {
        let refused = given(&world, stdin, arguments).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(words), "{arguments:?}: {words} is not in {}", refused.stderr);
        assert!(!refused.stderr.contains("tip:"), "{arguments:?}: {}", refused.stderr);
    }
    assert!(!world.path().join("workspaces").exists(), "not even the directory of workspaces");
    let listed = || async { world.sluice().run(&["runs", "ls", "--json"]).await.result() };
    assert_eq!(listed().await["runs"], json!([]));
    let control = ["run", "--agent", "test:sh", "--model", "fake", "--detach", "-"];
    let taken = given(&world, "café?\n".as_bytes(), &control).await;
    assert_eq!((taken.code, listed().await["runs"].as_array().unwrap().len()), (Some(0), 1), "{taken:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_misuse() {
    let world = World::start().await;
    let dir = world.path().join("dir");
    fs::create_dir(&dir).unwrap();
    let dir = dir.to_str().unwrap();
    let refusals: [(&[&str], &str); 5] = [
        (&["backup", "/nope/b"], "/nope/b"),
        (&["backup", dir], dir),
        (&["restore", "/nope/b"], "/nope/b"),
        (&["audit", "export", "--format", "csv", "-o", "/nope/x"], "/nope/x"),
        (&["audit", "export", "--format", "csv", "-o", dir], dir),
    ];
    for (arguments, path) in refusals {
        let refused = world.sluice().run(arguments).await;
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(path), "{arguments:?}: {refused:?}");
    }
}

#[tokio::test]
async fn an_empty_span_of_time_is_refused() {
    let world = World::start().await;
    for command in [&["audit", "stats"][..], &["audit", "export", "--format", "csv"]] {
        let span =
            async |from, to| world.sluice().run(&[command, &["--from", from, "--to", to]].concat()).await;
        let empty = span("1h", "2h").await;
        assert_eq!((empty.code, empty.stdout.as_str()), (Some(2), ""), "{empty:?}");
        assert!(empty.stderr.contains("--from is not before --to"), "{empty:?}");
        assert_eq!(span("2h", "1h").await.code, Some(0), "control");
    }
}

/// Either program can refuse: `sluice` the file, the proxy also what the file names.
#[tokio::test]
async fn a_refused_reload_is_json_on_request() {
    let world = World::start().await;
    let refusal = async || {
        let refused = world.sluice().run(&["reload", "--json"]).await;
        assert_ne!(refused.code, Some(0), "{refused:?}");
        let refusal: Value = serde_json::from_str(&refused.stdout).unwrap();
        let [code, message] = ["code", "message"].map(|field| refusal["error"][field].as_str().unwrap());
        format!("{code}: {message}")
    };
    private_file(&world.path().join("key"), "two words");
    let refused = refusal().await;
    assert!(refused.starts_with("reload_refused: ") && refused.contains("upstream.key_file"), "{refused}");
    world.reconfigure("threads = 2", "threads = 'many'");
    let refused = refusal().await;
    assert!(refused.starts_with("configuration_invalid: ") && refused.contains("proxy.threads"), "{refused}");
    assert_eq!(world.sluice().run(&["reload"]).await.stdout, "", "text has no place on standard output");
}
