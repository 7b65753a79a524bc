//! Tests faults of a GitHub: the commits are kept, the state says why they wait, and one push and one pull request follow.

use std::time::Duration;

use harness::{
    Agent, Up,
    canary::Places,
    eventually::eventually_within,
    git_server::Behaviour,
    github::{
        GitHubFault::{self, Away, Garbage, Lost, Status},
        GitHubRoute::{FindPulls, MakePull},
    },
    holds_for,
};
use http::StatusCode;
use rustix::process::Signal;
use serde_json::Value;

use super::{COMMITS, github::Hosted, relay};
use crate::recovery::survival::{LEASE, PATIENCE, ended, record};

/// Part of a host that has a fault.
enum Broken {
    /// The search for a pull request.
    Find(GitHubFault),
    /// The order of a pull request.
    Make(GitHubFault),
    /// The repository, towards a push.
    Push(Behaviour),
}

/// A fault, and what is known of the commits after it.
struct Case {
    name: &'static str,
    broken: Broken,
    stage: &'static str,
    said: &'static str,
}

const fn case(name: &'static str, broken: Broken, stage: &'static str, said: &'static str) -> Case {
    Case { name, broken, stage, said }
}

/// Faults that pass: another try follows by itself.
fn passing() -> [Case; 8] {
    use Broken::{Find, Make, Push};
    let limited = |header, value: &str| Status(403, "no more", vec![(header, value.to_owned())]);
    let exhausted = vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", "1".to_owned())];
    let pending = "pushed, the pull request is pending";
    [
        case("away", Find(Away), "pushed", "no connection with"),
        case("lost", Make(Lost), "pushed", "cannot make the pull request: no connection"),
        case("bad-gateway", Make(Status(502, "Bad Gateway", vec![])), "pushed", pending),
        case(
            "too-many",
            Find(Status(429, "slow down", vec![("retry-after", "1".to_owned())])),
            "pushed",
            "429",
        ),
        case("limited", Make(limited("retry-after", "1")), "pushed", "it can be tried again"),
        case("exhausted", Make(Status(403, "used up", exhausted)), "pushed", "used up"),
        case("git-away", Push(Behaviour::Away), "accepted", "pending, not pushed yet"),
        case("git-busy", Push(Behaviour::Fails(StatusCode::SERVICE_UNAVAILABLE)), "accepted", "503"),
    ]
}

/// Faults that stay until a person does something.
fn lasting() -> [Case; 5] {
    use Broken::{Find, Make, Push};
    let invalid = Status(422, "Validation Failed", vec![]);
    [
        case("bad-token", Find(Status(401, "Bad credentials", vec![])), "failed", "renew the token"),
        case("forbidden", Make(Status(403, "Resource not accessible", vec![])), "failed", "allow the token"),
        case("invalid", Make(invalid), "failed", "Validation Failed"),
        case("no-api", Find(Garbage), "failed", "is github.api_url the REST API"),
        case("git-forbids", Push(Behaviour::Fails(StatusCode::FORBIDDEN)), "failed", "403"),
    ]
}

impl Hosted {
    /// Runs the agent while the host has a fault. The run succeeds, and its commits are kept.
    async fn run_broken(&self, Case { name, broken, stage, said }: Case) {
        let [find, make] = [FindPulls, MakePull].map(|route| self.host.github.count(route));
        match broken {
            Broken::Find(fault) => self.host.github.script(FindPulls, [fault]),
            Broken::Make(fault) => self.host.github.script(MakePull, [fault]),
            Broken::Push(behaviour) => self.host.git.behave_to_pushes(behaviour),
        }
        let outcome = self.run(name, &["--account", "acct-1"]).await;
        // `sluice up` goes on with commits that wait.
        let code = i32::from(stage == "failed");
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(code), "done"), "{name}: {outcome:?}");
        self.host.git.behave(Behaviour::Serves);
        assert_eq!(relay(&self.world, name).await["stage"], stage, "{name}");
        let explained = self.world.sluice().run(&["git", "explain", name]).await.stdout;
        for text in [said, &format!("sluice git push {name}")] {
            assert!(explained.contains(text), "{name}: {text:?} is not in {explained}");
        }
        let [find, make] =
            [(FindPulls, find), (MakePull, make)].map(|(route, n)| self.host.github.count(route) - n);
        assert!(find <= 1 && make <= 1, "{name}: not again at once: {find} {make}");
    }

    /// Waits until the commits of `run` are published.
    async fn published(&self, run: &str) -> Value {
        let look = || relay(&self.world, run);
        let is_published = |relay: &Value| relay["stage"] == "published";
        eventually_within(PATIENCE, &format!("{run} is published"), look, is_published).await
    }
}

#[tokio::test]
async fn passing_faults_are_tried_again() {
    let mut hosted = Hosted::with(COMMITS, LEASE).await;
    let names = passing().map(|case| case.name);
    for case in passing() {
        hosted.run_broken(case).await;
    }
    assert!(hosted.world.stop_proxy().await);
    let up = Up::start(hosted.sluice()).await;
    for name in names {
        let relay = hosted.published(name).await;
        let number = hosted.assert_one(name);
        assert_eq!(relay["pull_request"]["url"], hosted.host.pull_url("app", number), "{relay}");
        assert_eq!(record(&hosted.world, name).await["answer"], "done", "the run had ended without it");
    }
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}

#[tokio::test]
async fn lasting_faults_wait_for_a_person() {
    let mut hosted = Hosted::with(COMMITS, "[api]\nlisten = '127.0.0.1:0'\n").await;
    let names = lasting().map(|case| case.name);
    for case in lasting() {
        hosted.run_broken(case).await;
    }
    // Its commits pass, but not for an hour.
    let hour = vec![("retry-after", "3600".to_owned())];
    let late = case("late", Broken::Find(Status(429, "slow down", hour)), "pushed", "slow down");
    hosted.run_broken(late).await;
    assert!(hosted.world.stop_proxy().await);
    let [find, make] = [FindPulls, MakePull].map(|route| hosted.host.github.count(route));
    let up = Up::start(hosted.sluice()).await;
    let api = up.said.lines().find_map(|line| line.strip_prefix("api       http://")).unwrap().to_owned();
    let api = Agent::over_tcp(api.parse().unwrap()).searched();
    let reader = async |name: &str, role: &str| {
        let added = ["principals", "add", name, "--account", "acct-1", "--role", role];
        let token = hosted.world.sluice().run(&added).await.stdout;
        api.clone().with_header("authorization", &format!("Bearer {}", token.trim()))
    };
    let [operator, member] = [reader("op", "operator").await, reader("app", "member").await];
    for (name, stage, said) in [("bad-token", "failed", "renew the token"), ("late", "pushed", "slow down")] {
        let path = format!("/api/v1/runs/{name}");
        let shown = operator.get(&path).await.json();
        assert_eq!(shown["commits"]["stage"], stage, "{shown:#}");
        assert!(shown["commits"]["detail"].as_str().unwrap().contains(said), "{shown:#}");
        let shown = member.get(&path).await.json();
        assert_eq!(shown["commits"]["stage"], stage, "{shown:#}");
        assert_eq!(shown["commits"]["detail"], Value::Null, "only for operators: {shown:#}");
    }
    // Longer than the interval at which it looks for commits that are due.
    let tried = || async { [FindPulls, MakePull].map(|route| hosted.host.github.count(route)) };
    let again = "nothing is tried again by itself";
    holds_for(Duration::from_secs(3), again, tried, |tried| *tried == [find, make]).await;
    for name in names.into_iter().chain(["late"]) {
        let pushed = hosted.sluice().run(&["git", "push", name]).await;
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        let url = hosted.host.pull_url("app", hosted.assert_one(name));
        assert!(pushed.stdout.contains(&url), "{pushed:?}");
        let again = hosted.sluice().run(&["git", "push", name]).await;
        assert_eq!(again.code, Some(0), "{again:?}");
        hosted.assert_one(name);
    }
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}

/// The run ends at its time, its place goes to the next one, and the pull request follows.
#[tokio::test]
async fn a_slow_remote_holds_up_no_run() {
    let settings = "[relay]\nwait = '1s'\n[worker]\nmax_concurrent_runs = 1\n";
    let mut hosted = Hosted::with(COMMITS, settings).await;
    assert!(hosted.world.stop_proxy().await);
    hosted.host.git.behave_to_pushes(Behaviour::Slow(Duration::from_millis(1500)));
    hosted.host.github.script(FindPulls, [GitHubFault::Slow(Duration::from_millis(1500))]);
    let up = Up::start(hosted.sluice()).await;
    Places::process(up.proxy_pid);
    assert_eq!(hosted.world.canaries(), [""; 0], "the proxy gets no token");
    Places::process(up.child.id().unwrap());
    assert_eq!(hosted.world.canaries().len(), 1, "control: `sluice up` has it");
    let order = hosted.order("r1", &["--detach"]);
    let order: Vec<_> = order.iter().map(String::as_str).collect();
    assert_eq!(hosted.world.sluice().run(&order).await.code, Some(0));
    let next = ["run", "--detach", "--agent", "test:sh", "--run-id", "r2", "q"];
    assert_eq!(hosted.world.sluice().run(&next).await.code, Some(0));
    let first = ended(&hosted.world, "r1").await;
    assert_eq!((&first["answer"], &first["state"]), (&"done".into(), &"succeeded".into()), "{first:#}");
    ended(&hosted.world, "r2").await;
    let waiting = relay(&hosted.world, "r1").await;
    assert_eq!(waiting["stage"], "accepted", "the second has ended, and the push is slow: {waiting}");
    hosted.published("r1").await;
    let url = hosted.host.pull_url("app", hosted.assert_one("r1"));
    let shown = hosted.world.sluice().run(&["runs", "show", "r1"]).await;
    assert!(shown.stdout.contains(&url), "{}", shown.stdout);
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}
