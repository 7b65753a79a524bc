//! Tests that commits which would harm a repository, and orders that name the wrong one, are refused.

use harness::{GitRemote, World};
use serde_json::Value;

use super::{COMMITS, relay, run_on};
use crate::sandbox::shell_agent;

/// Commits whatever the script before it has changed.
const COMMIT_ALL: &str = "git add --all && git commit --quiet -m 'Change' && echo done";

#[tokio::test]
async fn harmful_commits_are_refused_by_rule_and_path() {
    // In two pieces, because no entry may hold what looks like a token.
    let rest = "a1B2".repeat(9);
    let cases = [
        (
            "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
            "protected-path",
            ".github/workflows/ci.yml",
        ),
        ("ln -s /etc/passwd link", "link", "link"),
        (&format!("printf 'gh%s' p_{rest} > config"), "secret", "config"),
    ];
    for (change, rule, path) in cases {
        let world = World::with(&shell_agent(&format!("{change}; {COMMIT_ALL}"), "")).await;
        let remote = GitRemote::in_world(&world, "app.git");
        let outcome = run_on(&world, &remote, "r1", &[]).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(1), "done"), "its answer comes: {outcome:?}");
        let relay = relay(&world, "r1").await;
        let objection = &relay["objections"][0];
        assert_eq!(
            (relay["stage"].as_str(), objection["rule"].as_str()),
            (Some("refused"), Some(rule)),
            "{relay}"
        );
        assert_eq!(objection["path"].as_str(), Some(path), "{relay}");
        assert_eq!(remote.branches(), ["main first"], "{rule}");
        assert!(!relay.to_string().contains(&rest), "{relay}");
    }
}

/// An operator allows what was refused, and the commits that were kept are judged again.
#[tokio::test]
async fn refused_commits_are_pushed_once_allowed() {
    let script = format!("echo '* @acme' > CODEOWNERS; {COMMIT_ALL}");
    let settings = shell_agent(&script, "") + "[relay]\nprotected_paths = []\n";
    let world = World::with(&settings).await;
    let remote = GitRemote::in_world(&world, "app.git");
    run_on(&world, &remote, "r1", &[]).await;
    let explained = world.sluice().run(&["git", "explain", "r1"]).await;
    for said in ["CODEOWNERS", "protected paths stay as they are", "sluice git push r1"] {
        assert!(explained.stdout.contains(said), "{said}: {explained:?}");
    }
    let again = world.sluice().run(&["git", "push", "r1"]).await;
    assert_eq!(again.code, Some(1), "control: it is refused again: {again:?}");
    world.reconfigure("protected_paths = []", "protected_paths = ['!CODEOWNERS']");
    let pushed = world.sluice().run(&["git", "push", "r1"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert_eq!(remote.branches(), ["main first", "sandbox/r1 Change"]);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_branch_belongs_to_one_account() {
    let world = World::with(&shell_agent(COMMITS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let options = |account| ["--branch", "fix", "--account", account];
    assert_eq!(run_on(&world, &remote, "r1", &options("acct-1")).await.code, Some(0));
    let stolen = run_on(&world, &remote, "r2", &options("acct-2")).await;
    assert!(stolen.code != Some(0) && stolen.stderr.contains("belongs to another account"), "{stolen:?}");
    assert_eq!(run_on(&world, &remote, "r3", &options("acct-1")).await.code, Some(0), "control");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn orders_of_wrong_repositories_are_refused() {
    let toml = format!("{}[relay]\nrepositories = ['https://git.example/acme/*']\n", shell_agent("true", ""));
    let world = World::with(&toml).await;
    let remote = GitRemote::in_world(&world, "app.git").url();
    let listed = "https://git.example/acme/app";
    let cases: [(&[&str], &str); 9] = [
        (&["--repo", &remote], "is not in relay.repositories"),
        (&["--repo", "https://user:pw@git.example/acme/app"], "no user and no password"),
        (&["--repo", "ssh://git.example/acme/app"], "https://"),
        (&["--repo", listed, "--branch", "main"], "reserved"),
        (&["--repo", listed, "--branch", "release-2"], "reserved"),
        (&["--repo", listed, "--branch", "ap-00c0ffee00c0ffee"], "reserved"),
        (&["--repo", listed, "--branch", "../main"], "git takes no branch"),
        (&["--repo", listed, "--base", "sandbox/r2"], "is a branch of agents"),
        (&["--pr"], "neither it nor the agent names a repository"),
    ];
    for (options, said) in cases {
        let arguments = [&["run", "--agent", "test:sh", "--run-id", "r1"], options, &["q"]].concat();
        let outcome = world.sluice().run(&arguments).await;
        assert_eq!(outcome.code, Some(2), "{options:?}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{said:?} is not in {}", outcome.stderr);
    }
    world.assert_nothing_left().await;
}

/// A repository that cannot be cloned is a failure of the run, with the remote's reason and nothing of this host.
#[tokio::test]
async fn a_missing_repository_fails_the_run() {
    let world = World::with(&shell_agent("true", "")).await;
    let url = format!("file://{}/remotes/none.git", world.path().display());
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "--repo", &url, "--json", "q"];
    let outcome = world.sluice().run(&arguments).await;
    let result: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["error"]["code"], "repository_failed", "{result}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("could not be cloned: the remote refused"), "{message}");
    world.assert_nothing_left().await;
}
