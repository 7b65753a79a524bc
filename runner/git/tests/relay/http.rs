//! http speaks with a server that demands a password, and with servers that fail, redirect or hang.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use hyper::StatusCode;
use platform_core::secret::Secret;
use platform_runtime::config::Environment;
use runner_git::{
    AskPass, BaseBranch, Error, ProcessBounds, PushOutcome, Quarantine, Remote, RemoteFailure, RepoUrl,
};

use crate::{
    agent::{Agent, done},
    canary::write_program,
    git_server::{Behaviour, GitServer, USER, processes_with},
    world::{Relayed, World, push_order},
};

/// Longest time for a git that waits for a server which hangs.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Variable with the address from which a runner fetches until it is killed.
const KILLED_URL: &str = "RELAY_KILLED_URL";
/// Variable with the branch that it fetches.
const KILLED_BASE: &str = "RELAY_KILLED_BASE";

/// Host with a remote behind a server.
struct Hosted {
    world: World,
    server: GitServer,
    token: String,
}

impl Hosted {
    async fn start() -> Self {
        let mut world = World::new();
        let token = format!("t0ken-{:032x}", platform_runtime::random::bits());
        let server = GitServer::start(world.dir.clone(), &token).await;
        world.remote = remote(&world, &server, &token);
        Self { world, server, token }
    }

    /// Makes a quarantine with accepted work.
    async fn work(&self) -> (Agent, Quarantine) {
        let agent = self.world.agent().await;
        agent.work();
        agent.bundle(&self.world.bundle_file());
        let (quarantine, _received) = self.world.collect(&self.world.git, &agent).await;
        (agent, quarantine)
    }

    async fn push(&self, agent: &Agent, quarantine: &Quarantine) -> PushOutcome {
        let work = World::accepted(quarantine).await;
        quarantine.push(&self.world.remote, &push_order(agent, &work)).await.expect("git runs")
    }
}

fn remote(world: &World, server: &GitServer, token: &str) -> Remote {
    let url = RepoUrl::parse(&format!("{}/upstream.git", server.origin)).expect("it is an address");
    let number = platform_runtime::random::bits();
    let dir = world.dir.join(format!("askpass-{number:x}"));
    let askpass = AskPass::create(&dir, USER, &Secret::new(token.to_owned())).expect("it is written");
    Remote { url, credential: Some(Arc::new(askpass)) }
}

fn allow_push(world: &World) {
    let mut git = crate::agent::plain_git(&world.home, &world.upstream);
    done(git.args(["config", "http.receivepack", "true"]));
}

#[tokio::test]
async fn a_push_with_a_token_leaves_no_token() {
    let hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let agent = hosted.world.agent().await;
    agent.work();
    let relayed = hosted.world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
    assert_eq!(hosted.world.remote_tip("sandbox/run-1"), Some(agent.tip()));
    assert!(hosted.server.credentials() >= 4, "fetch, question and push had the token");
    assert_eq!(hosted.server.leaks(), [""; 0], "arguments and variables while git waited");
    let mut search = Command::new("grep");
    let search = search.args(["-rl", "--", &hosted.token]).arg(&hosted.world.dir);
    let found = String::from_utf8_lossy(&search.output().expect("grep starts").stdout).into_owned();
    let found: Vec<&str> = found.lines().collect();
    assert!(found.len() == 1 && found[0].contains("/askpass-"), "only the private file has it: {found:?}");
}

#[tokio::test]
async fn a_token_is_not_sent_in_the_clear() {
    let mut hosted = Hosted::start().await;
    // The name leads nowhere: without the rule, git would only fail to find it.
    hosted.world.remote.url = RepoUrl::parse("http://remote.invalid/upstream.git").expect("it is an address");
    let refreshed = hosted.world.cache.refresh(&hosted.world.remote, &World::base()).await;
    assert!(matches!(refreshed, Err(Error::OpenCredential { .. })), "{refreshed:?}");
}

#[tokio::test]
async fn a_token_in_an_argument_is_found() {
    let marker = format!("t0ken-{:032x}", platform_runtime::random::bits());
    let mut child = Command::new("sleep").args(["5"]).env("TOKEN", &marker).spawn().expect("it starts");
    let found = processes_with(&marker);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(found.len(), 1, "the control of the search: {found:?}");
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let mut hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let (agent, quarantine) = hosted.work().await;
    hosted.world.remote = remote(&hosted.world, &hosted.server, "wrong-token");
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(matches!(outcome, PushOutcome::Failed(RemoteFailure::Refused { .. })), "{outcome:?}");
    let refresh = hosted.world.cache.refresh(&hosted.world.remote, &World::base()).await;
    let refused = matches!(refresh, Err(Error::Remote(RemoteFailure::Refused { .. })));
    assert!(refused, "{refresh:?}");
}

#[tokio::test]
async fn a_remote_that_forbids_the_push_refuses() {
    let hosted = Hosted::start().await;
    let mut git = crate::agent::plain_git(&hosted.world.home, &hosted.world.upstream);
    done(git.args(["config", "http.receivepack", "false"]));
    let (agent, quarantine) = hosted.work().await;
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(matches!(outcome, PushOutcome::Failed(RemoteFailure::Refused { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_branch_that_moves_meanwhile_is_found() {
    let hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let (agent, quarantine) = hosted.work().await;
    let hook = hosted.world.upstream.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().expect("it is in a directory")).expect("a directory is made");
    let other = "git update-ref refs/heads/sandbox/run-1 refs/heads/main";
    write_program(&hook, &format!("#!/bin/sh\nunset GIT_QUARANTINE_PATH\n{other}\n"));
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(
        matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: true, .. })),
        "{outcome:?}"
    );
    let outcome = hosted.push(&agent, &quarantine).await;
    assert_eq!(outcome, PushOutcome::BranchMoved { found: Some(agent.clone.start.clone()) });
}

#[tokio::test]
async fn a_remote_that_fails_is_tried_again() {
    let hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let (agent, quarantine) = hosted.work().await;
    for status in [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::REQUEST_TIMEOUT,
    ] {
        hosted.server.behave(Behaviour::Fails(status));
        let outcome = hosted.push(&agent, &quarantine).await;
        assert!(
            matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: true, .. })),
            "{status}: {outcome:?}"
        );
    }
    hosted.server.behave_to_pushes(Behaviour::Away);
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(
        matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: true, .. })),
        "{outcome:?}"
    );
    for status in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND] {
        hosted.server.behave(Behaviour::Fails(status));
        let outcome = hosted.push(&agent, &quarantine).await;
        assert!(
            matches!(outcome, PushOutcome::Failed(RemoteFailure::Refused { .. })),
            "{status}: {outcome:?}"
        );
    }
    hosted.server.behave(Behaviour::Slow(Duration::from_millis(100)));
    assert_eq!(hosted.push(&agent, &quarantine).await, PushOutcome::Pushed);
}

#[tokio::test]
async fn a_remote_that_is_gone_is_tried_again() {
    let mut hosted = Hosted::start().await;
    let (agent, quarantine) = hosted.work().await;
    // The port was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    drop(listener);
    let url = RepoUrl::parse(&format!("http://127.0.0.1:{port}/upstream.git")).expect("it is an address");
    hosted.world.remote = Remote { url, credential: None };
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(
        matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: true, .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_redirection_gets_no_token() {
    let hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let (agent, quarantine) = hosted.work().await;
    let thief = GitServer::start(hosted.world.dir.clone(), &hosted.token).await;
    hosted.server.behave(Behaviour::Redirects(thief.origin.clone()));
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(
        matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: false, .. })),
        "{outcome:?}"
    );
    assert_eq!(thief.requests(), 0, "git does not follow");
    let mut curl = crate::agent::plain_git(&hosted.world.home, &hosted.world.dir);
    let url = format!("{}/upstream.git", hosted.server.origin);
    curl.env("GIT_ASKPASS", "/bin/echo").args(["ls-remote", &url]);
    let naive = tokio::task::spawn_blocking(move || curl.output().expect("git starts"));
    naive.await.expect("it ends");
    assert!(thief.credentials() > 0, "the control hands its credential to the other server");
}

#[tokio::test]
async fn a_push_that_is_dropped_leaves_no_process() {
    let hosted = Hosted::start().await;
    allow_push(&hosted.world);
    let (agent, quarantine) = hosted.work().await;
    hosted.server.behave(Behaviour::Hangs);
    let before = hosted.server.requests();
    let dir = hosted.world.dir.display().to_string();
    {
        let push = hosted.push(&agent, &quarantine);
        tokio::pin!(push);
        while hosted.server.requests() == before {
            let waited = tokio::time::timeout(Duration::from_millis(10), &mut push).await;
            assert!(waited.is_err(), "the server hangs");
        }
        assert!(!processes_with(&dir).is_empty(), "git waits for the server");
    }
    let gone = platform_runtime::poll::poll(Duration::from_millis(10), async || {
        processes_with(&dir).is_empty().then_some(())
    });
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("git and its children are killed");
    hosted.server.behave(Behaviour::Serves);
    assert_eq!(hosted.push(&agent, &quarantine).await, PushOutcome::Pushed);
    assert_eq!(hosted.push(&agent, &quarantine).await, PushOutcome::AlreadyThere);
}

/// Fetches a branch from a server that hangs, until this process is killed.
async fn fetch_until_killed(url: &str, base: &str) {
    let world = World::new();
    let base = BaseBranch::parse(base).expect("it is a branch");
    let remote = Remote { url: RepoUrl::parse(url).expect("it is an address"), credential: None };
    drop(world.cache.refresh(&remote, &base).await);
}

#[tokio::test]
async fn a_killed_runner_leaves_no_git() {
    let environment = Environment::capture();
    if let (Some(url), Some(base)) = (environment.get(KILLED_URL), environment.get(KILLED_BASE)) {
        return fetch_until_killed(url, base).await;
    }
    let hosted = Hosted::start().await;
    hosted.server.behave(Behaviour::Hangs);
    let base = format!("killed-{:032x}", platform_runtime::random::bits());
    let mut runner = Command::new(std::env::current_exe().expect("it is known"));
    runner.args(["http::a_killed_runner_leaves_no_git", "--exact"]).stdout(Stdio::null());
    runner.env(KILLED_URL, format!("{}/upstream.git", hosted.server.origin)).env(KILLED_BASE, &base);
    runner.env("TMPDIR", &hosted.world.dir);
    let mut runner = runner.spawn().expect("this test starts once more");
    let argument = format!("+refs/heads/{base}:");
    let count = async |wanted: usize| {
        let poll = platform_runtime::poll::poll(Duration::from_millis(10), async || {
            (processes_with(&argument).len() == wanted).then_some(())
        });
        tokio::time::timeout(Duration::from_secs(20), poll).await
    };
    count(1).await.expect("git waits for the server");
    runner.kill().expect("it runs");
    runner.wait().expect("it ends");
    count(0).await.expect("git is killed");
}

#[tokio::test]
async fn a_remote_that_hangs_is_given_up() {
    let hosted = Hosted::start().await;
    let (agent, _quarantine) = hosted.work().await;
    let bounds = ProcessBounds { time: SHORT_TIMEOUT, ..ProcessBounds::default() };
    let git = hosted.world.git.clone().with_bounds(bounds);
    let quarantine = Quarantine::open(&git, &hosted.world.dir.join("quarantine.git")).expect("it is there");
    hosted.server.behave(Behaviour::Hangs);
    let outcome = hosted.push(&agent, &quarantine).await;
    assert!(
        matches!(outcome, PushOutcome::Failed(RemoteFailure::Unreachable { retry: true, .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn ten_callers_share_a_fetch() {
    let hosted = Hosted::start().await;
    hosted.world.mirror().await;
    let one = hosted.server.requests();
    let mut callers = tokio::task::JoinSet::new();
    for _caller in 0..10 {
        let cache = hosted.world.cache.clone();
        let remote = hosted.world.remote.clone();
        callers.spawn(async move { cache.refresh(&remote, &World::base()).await.map(drop) });
    }
    for refreshed in callers.join_all().await {
        refreshed.expect("the remote answers");
    }
    let ten = hosted.server.requests() - one;
    assert!(ten <= 2 * one, "{ten} requests of ten callers, {one} of one");
}
