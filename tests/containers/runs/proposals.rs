//! Tests that a proposal becomes one commit and one pull request of the configuration's repository, and what its end is.

use std::time::Duration;

use harness::{
    Agent, GitHost, GitRemote, Outcome, Up, World, eventually::eventually_within, github::GitHubRoute,
    served::Served, store::open_store,
};
use platform_core::{id::ProposalId, limit::Millis};
use runner_model::failpoint::Point;
use runner_store::{NewProposal, ProposalProgress};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for a step of a proposal.
const PATIENCE: Duration = Duration::from_secs(60);
/// Configuration in the repository, which is valid by itself.
const CONFIGURATION: &str = "[gateways.main]\nagents = ['main', 'bot']\n\n[agents.'team:first']\nimage = 'team/first:1'\nargv = ['a']\n";
const PROPOSALS: &str = "/api/v1/agents/proposals";

/// Returns the settings of a repository for proposals.
fn repository(url: &str) -> String {
    format!("\n[agents_repository]\nurl = '{url}'\nskills = 'agents/skills'\n")
}

fn agent(name: &str) -> Value {
    json!({ "kind": "agent", "agentId": name, "settings": { "image": "team/new:1", "argv": ["b"] } })
}

fn skill(name: &str, text: &str) -> Value {
    json!({ "kind": "skill", "name": name, "text": text })
}

/// Sends a proposal; returns the status and the answer.
async fn propose(api: &Agent, body: &Value) -> (u16, Value) {
    let answer = api.post(PROPOSALS, body).await;
    (answer.status.as_u16(), answer.json())
}

/// Waits until a proposal has a state, and returns it.
async fn reaches(api: &Agent, proposed: &Value, state: &str, patience: Duration) -> Value {
    let path = format!("{PROPOSALS}/{}", proposed["id"].as_str().unwrap());
    let shown = async || api.get(&path).await.json();
    eventually_within(patience, &format!("it is {state}"), shown, |shown: &Value| shown["state"] == state)
        .await
}

/// Makes a proposal due at once, as it would be after a minute.
async fn pass_a_minute(world: &World, id: &str) {
    let id = ProposalId::parse(id).unwrap();
    open_store(world).await.hurry_proposals(&[id], Millis(0)).await.unwrap();
}

/// World that proposes to a repository of a directory, and one to a host with pull requests.
async fn directory() -> (TempDir, Served, GitRemote) {
    let root = tempfile::tempdir().unwrap();
    let remote = GitRemote::below(root.path(), "site.git");
    remote.add("sluice.toml", CONFIGURATION.as_bytes());
    (root, Served::with(&repository(&remote.url())).await, remote)
}

/// Returns the files that a branch changes.
fn changed(remote: &GitRemote, branch: &str) -> Vec<String> {
    remote.git(&["diff", "--name-only", "main", branch]).lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_proposed_agent_is_merged() {
    let (_root, served, remote) = directory().await;
    let boss = served.of_role("boss", "acct-1", "operator").await;
    let (status, proposed) = propose(&boss, &agent("team:new")).await;
    assert_eq!(
        (status, &proposed["state"], &proposed["diff"]),
        (202, &json!("queued"), &Value::Null),
        "{proposed}"
    );
    let shown = reaches(&boss, &proposed, "proposed", PATIENCE).await;
    let branch = shown["branch"].as_str().unwrap();
    assert_eq!(changed(&remote, branch), ["sluice.toml"], "{shown}");
    assert!(
        remote
            .content(branch, "sluice.toml")
            .ends_with("[agents.\"team:new\"]\nargv = [\"b\"]\nimage = \"team/new:1\"\n")
    );
    assert!(shown["diff"].as_str().unwrap().contains("+[agents.\"team:new\"]"), "{shown}");
    assert_eq!(
        (&shown["pullRequest"], &shown["createdBy"]),
        (&Value::Null, &json!("principal/boss")),
        "{shown}"
    );
    assert_eq!(remote.pushes(branch), 1);

    // The same entry again changes nothing once it is merged.
    remote.add("sluice.toml", remote.content(branch, "sluice.toml").as_bytes());
    pass_a_minute(&served.world, proposed["id"].as_str().unwrap()).await;
    reaches(&boss, &proposed, "merged", PATIENCE).await;
    let (_, again) = propose(&boss, &agent("team:new")).await;
    let refused = reaches(&boss, &again, "refused", PATIENCE).await;
    assert!(refused["reason"].as_str().unwrap().contains("has it already"), "{refused}");
    served.end().await;
}

/// A draft is made on the file of the repository, as it is then: this host's own has neither agent.
#[tokio::test]
async fn a_proposal_builds_on_the_newest_file() {
    let (_root, served, remote) = directory().await;
    let boss = served.of_role("boss", "acct-1", "operator").await;
    let moved = format!("{CONFIGURATION}\n[agents.'team:second']\nimage = 'team/second:1'\nargv = ['c']\n");
    remote.add("sluice.toml", moved.as_bytes());
    let gateway = json!({
        "kind": "gatewayAgent", "agentId": "team:bot",
        "settings": { "mode": "gateway", "gateways": ["main"], "gateway_agent": "bot" },
    });
    let (status, proposed) = propose(&boss, &gateway).await;
    assert_eq!(status, 202, "{proposed}");
    let shown = reaches(&boss, &proposed, "proposed", PATIENCE).await;
    let text = remote.content(shown["branch"].as_str().unwrap(), "sluice.toml");
    assert!(text.starts_with(&moved) && text.contains("gateway_agent = \"bot\""), "{text}");

    // The whole file is checked, as it would be.
    for wrong in [
        json!({ "kind": "agent", "agentId": "team:x", "settings": { "image": "a", "argv": ["b"], "dsk": "1MiB" } }),
        json!({ "kind": "gatewayAgent", "agentId": "team:x", "settings": { "mode": "gateway", "gateways": ["none"] } }),
    ] {
        let (status, proposed) = propose(&boss, &wrong).await;
        assert_eq!(status, 202, "{proposed}");
        let refused = reaches(&boss, &proposed, "refused", PATIENCE).await;
        assert!(refused["reason"].as_str().unwrap().contains("team:x"), "{refused}");
    }
    let branch = format!("refs/heads/{}", shown["branch"].as_str().unwrap());
    assert_eq!(remote.git(&["update-ref", "-d", &branch]), "");
    pass_a_minute(&served.world, proposed["id"].as_str().unwrap()).await;
    reaches(&boss, &proposed, "closed", PATIENCE).await;
    served.end().await;
}

#[tokio::test]
async fn a_skill_is_one_file_in_its_folder() {
    let (_root, served, remote) = directory().await;
    let boss = served.of_role("boss", "acct-1", "operator").await;
    let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
    for (name, text) in [
        ("../greet", "# Greet\n"),
        ("a/../../greet", "# Greet\n"),
        (".git", "# Greet\n"),
        ("greet", &format!("# Greet\n\nUse {token}\n")),
        ("greet", "# Greet \u{202e}\n"),
    ] {
        let (status, refused) = propose(&boss, &skill(name, text)).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{name}: {refused}");
        assert!(!refused.to_string().contains(&token), "{refused}");
    }
    assert_eq!(boss.get(PROPOSALS).await.json()["proposals"], json!([]), "nothing is stored");
    let text = "# Greet\n\nUse a token\n";
    let (status, proposed) = propose(&boss, &skill("greet", text)).await;
    assert_eq!(
        (status, &proposed["path"]),
        (202, &json!("agents/skills/greet/SKILL.md")),
        "the control: {proposed}"
    );
    let shown = reaches(&boss, &proposed, "proposed", PATIENCE).await;
    let branch = shown["branch"].as_str().unwrap();
    assert_eq!(changed(&remote, branch), ["agents/skills/greet/SKILL.md"]);
    assert_eq!(remote.content(branch, "agents/skills/greet/SKILL.md"), text);
    assert_eq!(remote.branches().len(), 2, "{:?}", remote.branches());
    served.end().await;
}

#[tokio::test]
async fn proposals_exist_for_their_account_alone() {
    let (_root, served, _remote) = directory().await;
    let boss = served.of_role("boss", "acct-b", "operator").await;
    let [viewer, stranger] =
        [served.of_role("eve", "acct-b", "viewer").await, served.of_role("ann", "acct-a", "member").await];
    assert_eq!(propose(&stranger, &agent("team:new")).await.0, 403);
    let keyed = boss.clone().with_header("idempotency-key", "k-1");
    let (status, proposed) = propose(&keyed, &agent("team:new")).await;
    assert_eq!(status, 202, "{proposed}");
    assert_eq!(propose(&keyed, &agent("team:new")).await.1["id"], proposed["id"], "once");
    let (status, taken) = propose(&keyed, &agent("team:other")).await;
    assert_eq!((status, &taken["code"]), (409, &json!("idempotency_key_taken")), "{taken}");

    let path = format!("{PROPOSALS}/{}", proposed["id"].as_str().unwrap());
    assert_eq!(stranger.get(&path).await.status, 404);
    assert_eq!(stranger.get(PROPOSALS).await.json()["proposals"], json!([]));
    reaches(&boss, &proposed, "proposed", PATIENCE).await;
    let seen = viewer.get(&path).await.json();
    assert_eq!((&seen["id"], &seen["diff"]), (&proposed["id"], &Value::Null), "no part of the file: {seen}");
    assert_eq!(viewer.get(PROPOSALS).await.json()["proposals"].as_array().unwrap().len(), 1, "the control");
    for number in 1..20 {
        let (status, more) = propose(&boss, &skill(&format!("s-{number}"), "x")).await;
        assert_eq!(status, 202, "{more}");
    }
    let (status, full) = propose(&boss, &skill("s-20", "x")).await;
    assert_eq!((status, &full["code"]), (409, &json!("proposals_exhausted")), "{full}");
    served.end().await;
}

/// A token for some agents would get past its limits, for a proposal may change any entry.
#[tokio::test]
async fn a_limited_token_proposes_nothing() {
    let (_root, served, _remote) = directory().await;
    let limited = ["limited", "--account", "acct-1", "--role", "operator", "--agent", "team:first"];
    let limited = served.principal(&limited).await;
    let (status, refused) = propose(&limited, &agent("team:first")).await;
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    let boss = served.of_role("boss", "acct-1", "operator").await;
    assert_eq!(propose(&boss, &agent("team:first")).await.0, 202, "control");
    served.end().await;
}

/// The entry that a proposal replaces held a token, which its difference would show.
#[tokio::test]
async fn a_difference_with_a_secret_is_left_out() {
    let (_root, served, remote) = directory().await;
    let boss = served.of_role("boss", "acct-1", "operator").await;
    let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
    remote.add("sluice.toml", CONFIGURATION.replace("'a'", &format!("'{token}'")).as_bytes());
    let (_, proposed) = propose(&boss, &agent("team:first")).await;
    let shown = reaches(&boss, &proposed, "proposed", PATIENCE).await;
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.starts_with("left out: it holds a") && !diff.contains(&token), "{shown}");
    served.end().await;
}

#[tokio::test]
async fn without_a_repository_the_setting_is_named() {
    let served = Served::with("").await;
    let boss = served.of_role("boss", "acct-1", "operator").await;
    let (status, refused) = propose(&boss, &agent("team:new")).await;
    assert_eq!((status, &refused["code"]), (409, &json!("agents_repository_missing")), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("agents_repository.url"), "{refused}");
    let outcome =
        served.world.sluice().run(&["agents", "propose", "agent", "team:a", "--setting", "image=a"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let wrong = ["up", "--set", "agents_repository.url=ssh://git.example/acme/site"];
    let outcome = served.world.sluice().run(&wrong).await;
    assert!(outcome.code == Some(2) && outcome.stderr.contains("https://"), "{outcome:?}");
    served.end().await;
}

/// World with its repository on a host with pull requests.
struct Hosted {
    world: World,
    host: GitHost,
    remote: GitRemote,
}

impl Hosted {
    async fn start() -> Self {
        let host = GitHost::start().await;
        let remote = host.repository("site");
        remote.add("sluice.toml", CONFIGURATION.as_bytes());
        let settings = format!("{}{}", repository(&host.url("site")), host.settings());
        let mut world = World::with(&settings).await;
        assert!(world.stop_proxy().await);
        Self { world, host, remote }
    }

    async fn sluice(&self, arguments: &[&str]) -> Outcome {
        self.host.authorize(self.world.sluice()).run(arguments).await
    }

    /// Proposes an agent with the command line; returns the id of the proposal.
    async fn propose(&self, agent: &str) -> String {
        let order =
            ["agents", "propose", "agent", agent, "--setting", "image=a", "--setting", "argv=[\"b\"]"];
        let outcome = self.sluice(&order).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    async fn shown(&self, id: &str) -> Value {
        let outcome = self.sluice(&["agents", "proposals", id, "--json"]).await;
        serde_json::from_str(&outcome.stdout).unwrap()
    }
}

#[tokio::test]
async fn a_killed_worker_proposes_once() {
    let hosted = Hosted::start().await;
    for (number, point) in (1..).zip(Point::PROPOSAL) {
        let armed = format!("{}:kill", point.name());
        let up = hosted.host.authorize(hosted.world.sluice()).env("SLUICE_FAILPOINT", &armed);
        let mut up = Up::start(up).await;
        let name = format!("team:{}", point.name());
        let id = &hosted.propose(&name).await;
        assert_eq!(up.death().await, Some(Signal::KILL.as_raw()), "{armed} was reached");
        // While nothing works, the base moves on.
        let moved = format!("{CONFIGURATION}# {number}\n");
        hosted.remote.add("sluice.toml", moved.as_bytes());
        let next = Up::start(hosted.host.authorize(hosted.world.sluice())).await;
        pass_a_minute(&hosted.world, id).await;
        let shown = async || hosted.shown(id).await;
        let proposed = |shown: &Value| shown["state"] == "proposed";
        let shown = eventually_within(PATIENCE, "it is proposed", shown, proposed).await;
        let branch = format!("sandbox/{id}");
        assert_eq!(hosted.remote.pushes(&branch), 1, "{armed}: {shown}");
        let pulls = hosted.host.github.pulls();
        let own: Vec<_> = pulls.iter().filter(|pull| pull.head == branch).collect();
        let [pull] = own[..] else { panic!("{armed}: {own:?}") };
        assert_eq!((pull.base.as_str(), pull.title.as_str()), ("main", format!("Add agent {name}").as_str()));
        assert!(
            pull.body.contains(&format!("`{id}`")) && pull.body.contains("`sluice reload`"),
            "{}",
            pull.body
        );
        assert_eq!(shown["pullRequest"]["url"], hosted.host.pull_url("site", number).as_str());
        let is_newest = hosted.remote.content(&branch, "sluice.toml").starts_with(&moved);
        let was_pushed = matches!(point, Point::ProposalPushed | Point::ProposalMade);
        assert_eq!(is_newest, !was_pushed, "{armed}: it is made anew until it is pushed");
        next.stop(Signal::TERM).await;
        kill_process(Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(), Signal::KILL).ok();
    }
    hosted.world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_merge_is_seen_with_one_question() {
    let hosted = Hosted::start().await;
    let up = Up::start(hosted.host.authorize(hosted.world.sluice())).await;
    let id = &hosted.propose("team:new").await;
    let shown = async || hosted.shown(id).await;
    let is = |state: &'static str| move |shown: &Value| shown["state"] == state;
    eventually_within(PATIENCE, "it is proposed", shown, is("proposed")).await;
    hosted.host.github.merge_pull(&format!("sandbox/{id}"));
    pass_a_minute(&hosted.world, id).await;
    let merged = eventually_within(PATIENCE, "it is merged", shown, is("merged")).await;
    assert_eq!(merged["pullRequest"]["number"], 1, "{merged}");
    let looks = hosted.host.github.exchanges();
    let looks = looks.iter().filter(|exchange| exchange.route == Some(GitHubRoute::ReadPull)).count();
    assert_eq!(looks, 1);
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}

/// The operator has named another repository meanwhile: the first one gets nothing any more.
#[tokio::test]
async fn a_place_that_was_changed_gets_nothing() {
    let hosted = Hosted::start().await;
    let id = hosted.propose("team:new").await;
    let other = hosted.host.repository("other");
    other.add("sluice.toml", CONFIGURATION.as_bytes());
    hosted.world.reconfigure(&hosted.host.url("site"), &hosted.host.url("other"));
    let up = Up::start(hosted.host.authorize(hosted.world.sluice())).await;
    let shown = async || hosted.shown(&id).await;
    let failed = |shown: &Value| shown["state"] == "failed";
    let failed = eventually_within(PATIENCE, "it has failed", shown, failed).await;
    assert!(failed["reason"].as_str().unwrap().contains("names another place now"), "{failed}");
    for remote in [&hosted.remote, &other] {
        assert_eq!(remote.branches().len(), 1, "{:?}", remote.branches());
    }
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}

/// Another version of the program may have stored what this one cannot read. That keeps no other, and is tried again only
/// with each look.
#[tokio::test]
async fn unreadable_proposals_keep_no_others() {
    let hosted = Hosted::start().await;
    let store = open_store(&hosted.world).await;
    for number in 0..8 {
        let progress =
            ProposalProgress { state: "queued", document: "{}".to_owned(), due_in: Some(Millis(0)) };
        let unreadable = NewProposal {
            id: ProposalId::from_random(number),
            account: "local".parse().unwrap(),
            principal: "ann".parse().unwrap(),
            content: "{}".to_owned(),
            progress,
        };
        store.add_proposal(&unreadable).await.unwrap();
    }
    let log = hosted.world.path().join("up.log");
    let up = Up::start(hosted.host.authorize(hosted.world.sluice()).log_to(&log)).await;
    let id = hosted.propose("team:new").await;
    let shown = async || hosted.shown(&id).await;
    eventually_within(PATIENCE, "it is proposed", shown, |shown| shown["state"] == "proposed").await;
    let text = std::fs::read_to_string(&log).unwrap();
    let tries = text.matches("proposal not continued").count();
    // Looks are two seconds apart, also on a slow machine.
    let most = 8 * usize::try_from(PATIENCE.as_secs() / 2).unwrap();
    assert!((8..most).contains(&tries), "{tries}");
    up.stop(Signal::TERM).await;
    hosted.world.assert_nothing_left().await;
}
