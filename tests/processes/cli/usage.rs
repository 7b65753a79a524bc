//! Tests help, completions, and the messages for arguments that are wrong.

use harness::{Outcome, World, binary};
use tokio::process::Command;

const REVIEWER: &str = "[agents.'team:reviewer']\nargv = ['node', '/agent/run.mjs']\nname = 'Reviewer'\ndescription = 'reads diffs'\nimage = 'no-such-image:1'\n";

#[tokio::test]
async fn misuse_is_answered_with_alternatives() {
    let world = World::with(REVIEWER).await;
    let cases: [(&[&str], &str); 8] = [
        (
            &["run", "--agent", "team:reviwer", "q"],
            "there are: sandbox:agent, sandbox:openclaw, team:reviewer",
        ),
        (&["run", "--agent", "reviewer", "q"], "reviewer"),
        (&["run", "--run-id", "../r1", "q"], "../r1"),
        (&["run", "--account", "a b", "q"], "a b"),
        (&["run"], "QUESTION"),
        (&["run", "--colour", "q"], "--colour"),
        (&["walk"], "walk"),
        (&["completions", "cmd.exe"], "bash"),
    ];
    for (arguments, words) in cases {
        let outcome = world.sluice().run(arguments).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {words} is not in {}", outcome.stderr);
    }
    assert!(world.upstream.ledger().is_empty());
}

#[tokio::test]
async fn help_shows_examples() {
    let world = World::start().await;
    let cases: [(&[&str], &str); 6] = [
        (&["--help"], "sluice run \""),
        (&["run", "--help"], "git diff | sluice run -"),
        (&["audit", "tail", "--help"], "jq"),
        (&["token", "mint", "--help"], "OPENAI_API_KEY=$(sluice token mint"),
        (&["token", "inspect", "--help"], "sluice token inspect <"),
        (&["--version"], "sluice 0"),
    ];
    for (arguments, words) in cases {
        let outcome = world.sluice().run(arguments).await;
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
        assert!(outcome.stdout.contains(words), "{arguments:?}: {words} is not in {}", outcome.stdout);
    }
    let proxy: Outcome = Command::new(binary("sluice-proxy")).arg("--help").output().await.unwrap().into();
    assert!(proxy.stdout.contains("Examples:\n  sluice-proxy --config "), "{proxy:?}");
}

#[tokio::test]
async fn completions_are_what_a_shell_accepts() {
    let world = World::start().await;
    for (shell, words) in [("zsh", "#compdef sluice"), ("fish", "complete -c sluice")] {
        let outcome = world.sluice().run(&["completions", shell]).await;
        assert!(outcome.code == Some(0) && outcome.stdout.contains(words), "{outcome:?}");
    }
    let file = world.path().join("completions");
    std::fs::write(&file, world.sluice().run(&["completions", "bash"]).await.stdout).unwrap();
    let bash = Command::new("bash").args(["-c", "source \"$0\" && complete -p sluice"]).arg(&file).output();
    let bash: Outcome = bash.await.unwrap().into();
    assert!(bash.code == Some(0) && bash.stdout.contains("_sluice"), "{bash:?}");
}
