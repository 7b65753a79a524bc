//! Tests that commits become a draft pull request, and that the token for it is nowhere else.

use harness::{
    GitHost, GitRemote, Outcome, Up, World, github::GitHubRoute, github::PullMark, sluice::Sluice,
};
use rustix::process::Signal;
use serde_json::json;

use super::{COMMITS, relay};
use crate::{
    recovery::survival::{LEASE, ended},
    sandbox::shell_agent,
};

/// World with runs that work on a repository of a GitHub.
pub(super) struct Hosted {
    pub(super) world: World,
    pub(super) host: GitHost,
    pub(super) remote: GitRemote,
}

impl Hosted {
    /// Starts a world with an agent that runs `script`, and with more settings.
    pub(super) async fn with(script: &str, settings: &str) -> Self {
        let host = GitHost::start().await;
        let remote = host.repository("app");
        let settings = format!("{}{}{settings}", shell_agent(script, ""), host.settings());
        Self { world: World::with(&settings).await, host, remote }
    }

    /// Returns a command that has the token.
    pub(super) fn sluice(&self) -> Sluice {
        self.host.authorize(self.world.sluice())
    }

    /// Runs the agent as `run`, for a pull request.
    pub(super) async fn run(&self, run: &str, options: &[&str]) -> Outcome {
        self.sluice().run(&self.order(run, options).iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// Returns the arguments that order `run`.
    pub(super) fn order(&self, run: &str, options: &[&str]) -> Vec<String> {
        let url = self.host.url("app");
        let first = ["run", "--agent", "test:sh", "--run-id", run, "--repo", &url, "--pr"];
        [&first[..], options, &["q"]].concat().into_iter().map(str::to_owned).collect()
    }

    /// Checks that `run` made one push and one pull request, and returns the number of the latter.
    pub(super) fn assert_one(&self, run: &str) -> usize {
        let branch = format!("sandbox/{run}");
        assert_eq!(self.remote.pushes(&branch), 1, "pushes of {run}");
        let pulls = self.host.github.pulls();
        let own: Vec<_> = (1..).zip(&pulls).filter(|(_, pull)| pull.head == branch).collect();
        let [(number, pull)] = own[..] else { panic!("pull requests of {run}: {own:?}") };
        assert_eq!((pull.base.as_str(), pull.has(PullMark::Draft)), ("main", true), "{pull:?}");
        number
    }
}

#[tokio::test]
async fn a_pull_request_ends_the_answer() {
    const DESCRIBES: &str = "printf 'Fix @octocat\\n\\nIt closes #7.\\n' > /workspace/.cogni/pr.md; ";
    let hosted = Hosted::with(&[DESCRIBES, COMMITS].concat(), "[relay]\nlabels = ['agent']\n").await;
    let outcome = hosted.run("r1", &[]).await;
    let url = hosted.host.pull_url("app", 1);
    let answer = format!("done\n\n{url}");
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), answer.as_str()), "{outcome:?}");
    assert_eq!(hosted.assert_one("r1"), 1);
    let pull = &hosted.host.github.pulls()[0];
    assert_eq!((pull.title.as_str(), &pull.labels), ("Fix @ octocat", &vec!["agent".to_owned()]));
    let quoted =
        "> It closes # 7.\n\n---\n\nMade by agent `test:sh` in run `r1`. The quoted text is the agent's.";
    assert_eq!(pull.body, quoted);
    assert_eq!(hosted.remote.branches(), ["main first", "sandbox/r1 Change a"]);

    let shown = hosted.world.sluice().run(&["runs", "show", "r1"]).await;
    assert!(shown.stdout.contains(&format!("sandbox/r1: {url}; 1 commit, 1 file")), "{}", shown.stdout);
    let record = hosted.world.sluice().run(&["runs", "show", "r1", "--json"]).await.result();
    assert_eq!(record["answer"], json!(answer), "{record:#}");
    let events = hosted.world.sluice().run(&["runs", "events", "r1", "--json"]).await.events();
    let commits: Vec<_> = events.iter().filter(|event| event["type"] == "commits").collect();
    let [commits] = commits[..] else { panic!("{events:#?}") };
    assert_eq!(
        (&commits["stage"], &commits["pull_request"]),
        (&json!("published"), &json!(url)),
        "{commits}"
    );
    let relay = relay(&hosted.world, "r1").await;
    assert_eq!(relay["pull_request"], json!({ "number": 1, "url": url }), "{relay}");
    hosted.world.assert_nothing_left().await;
}

/// An agent's text for a pull request is published as its files are, so it is judged with them.
#[tokio::test]
async fn a_token_in_the_text_is_refused() {
    // In two pieces, because no entry may hold what looks like a token.
    let rest = "a1B2".repeat(9);
    let file = format!("printf 'Title\\n\\ngh%s\\n' p_{rest} > /workspace/.cogni/pr.md; {COMMITS}");
    let answer = format!("{COMMITS}; printf 'gh%s\\n' p_{rest}");
    for script in [file, answer] {
        let hosted = Hosted::with(&script, "").await;
        let outcome = hosted.run("r1", &[]).await;
        let relay = relay(&hosted.world, "r1").await;
        assert_eq!(relay["stage"], "refused", "{relay} {outcome:?}");
        assert_eq!(relay["objections"][0]["detail"], "the text for the pull request holds a GitHub token");
        assert_eq!(hosted.remote.branches(), ["main first"]);
        assert!(hosted.host.github.pulls().is_empty());
    }
}

/// An agent that finds its run's token in any file, environment or argument names the place.
#[tokio::test]
async fn the_token_is_nowhere_else() {
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let (one, other) = host.token.split_at(9);
    let search = format!(
        r#"key="{one}""{other}"; printf '%s' "$key" > /tmp/planted
        grep -rlaF --exclude-dir=sys --exclude-dir=proc -f <(printf '%s' "$key") / 2>/dev/null
        cd /proc; grep -laF -f <(printf '%s' "$key") [0-9]*/environ [0-9]*/cmdline 2>/dev/null
        cd /workspace/repo; git config --list | grep -c x-access-token; {COMMITS}"#
    );
    let settings = format!("{}{}", shell_agent(&search, ""), host.settings());
    let hosted = Hosted { world: World::with(&settings).await, host, remote };
    let order = hosted.order("r1", &["--json"]);
    let order: Vec<_> = order.iter().map(String::as_str).collect();
    let child = hosted.sluice().env("SLUICE_LOG", "trace").spawn(&order);
    let own = format!("/proc/{}/environ", child.id().unwrap());
    let outcome = Outcome::from(child.wait_with_output().await.unwrap());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let found = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    assert_eq!(found, "/tmp/planted\n0\ndone\n", "control: the search finds what it planted, and that alone");
    assert!(!(outcome.stdout + &outcome.stderr).contains(&hosted.host.token), "output and log");
    hosted.assert_one("r1");

    let leaks = hosted.host.git.leaks();
    assert!(!leaks.is_empty(), "control: the search sees the environment of the command that has the token");
    assert!(leaks.iter().all(|leak| *leak == own), "{own}: {leaks:?}");
    let exchanges = hosted.host.github.exchanges();
    let bearer = format!("Bearer {}", hosted.host.token);
    assert!(exchanges.iter().all(|exchange| exchange.headers["authorization"] == bearer), "control");

    for view in [&["runs", "show", "r1", "--json"][..], &["runs", "events", "r1"], &["git", "explain", "r1"]]
    {
        assert_eq!(hosted.world.sluice().run(view).await.code, Some(0), "{view:?}");
    }
    assert_eq!(hosted.world.canaries(), [""; 0], "store, journal, logs, workspaces");
    std::fs::write(hosted.world.path().join("planted"), &hosted.host.token).unwrap();
    let [found] = &hosted.world.canaries()[..] else { panic!("the control of the search") };
    assert!(found.contains("/planted: "), "{found}");
    std::fs::remove_file(hosted.world.path().join("planted")).unwrap();
    hosted.world.assert_nothing_left().await;
}

/// Without a token no agent works for a pull request that cannot be made, whichever way the order comes.
#[tokio::test]
async fn a_missing_token_is_named() {
    let mut hosted = Hosted::with(COMMITS, LEASE).await;
    let order = hosted.order("r1", &[]);
    let order: Vec<_> = order.iter().map(String::as_str).collect();
    let refused = hosted.world.sluice().run(&order).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    for words in ["no pull request can be made for", "`export GITHUB_TOKEN=TOKEN`", "github.token_file"] {
        assert!(refused.stderr.contains(words), "{words} is not in {refused:?}");
    }
    let unknown = hosted.world.sluice().run(&["runs", "show", "r1"]).await;
    assert_eq!(unknown.code, Some(1), "no run was made: {unknown:?}");

    let detached = hosted.world.sluice().run(&[&order[..], &["--detach"]].concat()).await;
    assert_eq!(detached.code, Some(0), "another process may have a token: {detached:?}");
    assert!(hosted.world.stop_proxy().await);
    let up = Up::start(hosted.world.sluice()).await;
    let record = ended(&hosted.world, "r1").await;
    assert_eq!(record["error"]["code"], "repository_failed", "{record:#}");
    up.stop(Signal::TERM).await;
    assert_eq!(hosted.remote.branches(), ["main first"]);
    assert_eq!(hosted.host.github.count(GitHubRoute::MakePull), 0);
    hosted.world.assert_nothing_left().await;
}
