//! Each run has its own key at the upstream: minted by its first call, deleted after its end.

use std::{fs, path::Path, time::Duration};

use bench::upstream::ScriptedUpstream;
use harness::{
    Run, World, eventually, grant,
    key_minting_upstream::{ADMIN_KEY, Deletes, KeyMintingUpstream, Mints},
    private_file,
};
use http::Method;
use platform_core::{budget::Budget, grant::RunGrant, money::NanoDollars};
use serde_json::json;
use tempfile::TempDir;

/// A proxy before an upstream that mints keys.
struct Minting {
    world: World,
    upstream: KeyMintingUpstream,
    /// Directory of the admin key.
    _dir: TempDir,
}

impl Minting {
    async fn start() -> Self {
        let upstream = KeyMintingUpstream::start().await;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("admin-key");
        private_file(&file, ADMIN_KEY);
        let settings = format!(
            "base_url = '{}'\nkey_per_run = true\nadmin_key_file = '{}'",
            upstream.base_url(),
            file.display()
        );
        let scripted = ScriptedUpstream::start().await.unwrap();
        let world = World::reaching(scripted, &settings, "[prices.fake]\ninput = '1'\noutput = '1'\n").await;
        Self { world, upstream, _dir: dir }
    }

    async fn close(&self, run: &Run) {
        self.world.control.close(&run.grant.run_id, 0).await.unwrap();
    }

    async fn no_key_is_left(&self) {
        let aliases = || async { self.upstream.aliases() };
        eventually("all keys are deleted", aliases, Vec::is_empty).await;
    }
}

#[tokio::test]
async fn each_run_has_a_key_of_its_own() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let budget = Budget { cost_nanodollars: Some(NanoDollars(2_500_000_000)), ..Budget::default() };
    let models = Some(vec!["fake".parse().unwrap()]);
    let one = world.run_with(RunGrant { budget, models, ..grant("r1", "acct-1") }).await;
    let other = world.run("r2", "acct-2").await;
    for run in [&one, &one, &other] {
        let answer = run.agent.chat("fake").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = format!("{:?} {}", answer.headers, answer.text());
        assert!(!seen.contains("sk-canary") && seen.contains("*****"), "no run learns its key: {seen}");
    }
    let calls = upstream.calls();
    assert_eq!((calls.len(), calls[0] == calls[1], calls[1] == calls[2]), (3, true, false), "{calls:?}");
    let minted = upstream.minted();
    assert_eq!(minted.len(), 2, "{minted:?}");
    assert_eq!((&minted[0]["max_budget"], &minted[0]["models"]), (&json!(2.5), &json!(["fake"])));
    assert_eq!(minted[0]["metadata"], json!({ "run_id": "r1", "attempt": 0, "account": "acct-1" }));
    let routes = minted[0]["allowed_routes"].as_array().unwrap();
    assert!(routes.contains(&json!("/v1/chat/completions")) && !routes.contains(&json!("/key/generate")));
    assert!(minted[1].get("max_budget").is_none(), "no limit, no budget");

    there.close(&one).await;
    let left = || async { upstream.aliases() };
    let left = eventually("its key is deleted", left, |left| left.len() == 1).await;
    assert!(left[0].starts_with("sluicegate/r2/0/"), "{left:?}");
    there.close(&other).await;
    there.no_key_is_left().await;
}

#[tokio::test]
async fn a_run_without_a_key_sends_nothing() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let run = world.run("r1", "acct-1").await;
    upstream.mint(Mints::Nothing);
    for _ in 0..3 {
        let answer = run.agent.chat("fake").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (503, &"upstream_unavailable".into())
        );
    }
    assert_eq!(upstream.calls(), [""; 0]);
    let aliases = fs::read_to_string(world.path().join("state/run-keys")).unwrap();
    assert_eq!(aliases.lines().count(), 1, "failed mints leave one alias: {aliases}");
    upstream.mint(Mints::Keys);
    assert_eq!(run.agent.chat("fake").await.status, 200);
    there.close(&run).await;
    there.no_key_is_left().await;
}

/// The key of a call that was given up while it was minted is deleted with the others.
#[tokio::test]
async fn a_cancelled_call_leaves_no_key() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let run = world.run("r1", "acct-1").await;
    upstream.mint(Mints::After(Duration::from_millis(300)));
    let aliases = || async { upstream.aliases() };
    tokio::select! {
        answer = run.agent.chat("fake") => panic!("its key takes longer: {answer:?}"),
        _ = eventually("the key is minted", aliases, |aliases| !aliases.is_empty()) => {}
    }
    there.close(&run).await;
    there.no_key_is_left().await;
}

#[tokio::test]
async fn a_key_is_deleted_once_the_upstream_can() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    upstream.delete(Deletes::Nothing);
    there.close(&run).await;
    let log = || async { world.log() };
    eventually("the deletion fails", log, |log| log.contains("is not deleted yet")).await;
    assert_eq!(upstream.aliases().len(), 1, "control: nothing else deletes it");
    upstream.delete(Deletes::Keys);
    there.no_key_is_left().await;
}

#[tokio::test]
async fn a_refused_deletion_delays_no_other() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let [first, second] = [world.run("r1", "acct-1").await, world.run("r2", "acct-1").await];
    for run in [&first, &second] {
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    upstream.delete(Deletes::AllBut("r1"));
    there.close(&first).await;
    let asked = || async { upstream.asked_deletions() };
    eventually("the first deletion is refused", asked, |asked| !asked.is_empty()).await;
    there.close(&second).await;
    let left = || async { upstream.aliases() };
    let left = eventually("the second key is deleted", left, |left| left.len() == 1).await;
    assert!(left[0].starts_with("sluicegate/r1/"), "control: the first is refused still: {left:?}");
    upstream.delete(Deletes::Keys);
    there.no_key_is_left().await;
}

/// An upstream that does not answer would hold up each deletion for as long as the first.
#[tokio::test]
async fn without_an_answer_no_further_key_is_tried() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let [first, second] = [world.run("r1", "acct-1").await, world.run("r2", "acct-1").await];
    for run in [&first, &second] {
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    upstream.delete(Deletes::Unanswered);
    there.close(&first).await;
    let asked = || async { upstream.asked_deletions() };
    let before = eventually("the first deletion is tried", asked, |asked| !asked.is_empty()).await.len();
    there.close(&second).await;
    let asked = eventually("it is tried again", asked, |asked| asked.len() > before).await;
    assert!(asked.iter().all(|alias| alias.starts_with("sluicegate/r1/")), "{asked:?}");
    assert_eq!(upstream.aliases().len(), 2, "control: nothing is deleted");
    upstream.delete(Deletes::Keys);
    there.no_key_is_left().await;
}

/// Keys of a killed proxy are deleted by the next one. A run that goes on gets another key.
#[tokio::test]
async fn a_killed_proxy_leaves_no_key() {
    let mut there = Minting::start().await;
    let run = there.world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    there.world.kill_proxy().await;
    let before = there.upstream.aliases();
    assert_eq!(before.len(), 1, "control: a kill deletes nothing");
    there.world.start_proxy().await;
    let deleted = || async { there.upstream.deleted() };
    assert_eq!(eventually("the key is deleted", deleted, |deleted| !deleted.is_empty()).await, before);
    let again = eventually("the run goes on", || run.agent.chat("fake"), |answer| answer.status == 200).await;
    assert!(!again.text().contains("sk-canary"), "{}", again.text());
    let calls = there.upstream.calls();
    assert_ne!(calls.first(), calls.last());
    there.close(&run).await;
    there.no_key_is_left().await;
}

/// A raised limit holds for the key as well.
#[tokio::test]
async fn changed_limits_give_a_run_another_key() {
    let there = Minting::start().await;
    let Minting { world, upstream, .. } = &there;
    let budget = |dollars: u64| Budget {
        cost_nanodollars: Some(NanoDollars(dollars * 1_000_000_000)),
        ..Budget::default()
    };
    let run = world.run_with(RunGrant { budget: budget(1), ..grant("r1", "acct-1") }).await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let raised = serde_json::to_string(&budget(5)).unwrap();
    assert_eq!(world.control.send(Method::PUT, "/v1/runs/r1/budget", raised).await.status, 200);
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let budgets: Vec<_> =
        upstream.minted().iter().map(|minted| minted["max_budget"].as_f64().unwrap()).collect();
    assert!(budgets[0] <= 1.0 && budgets[1] > 4.0, "{budgets:?}");
    there.close(&run).await;
    there.no_key_is_left().await;
}

/// No file and no log of the proxy holds a key.
#[tokio::test]
async fn keys_of_runs_are_kept_in_memory_only() {
    let there = Minting::start().await;
    let world = &there.world;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let holds =
        |path: &Path| fs::read(path).is_ok_and(|bytes| bytes.windows(9).any(|window| window == b"sk-canary"));
    let mut files = vec![world.path().join("state")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert!(!holds(&path), "{}", path.display());
        }
    }
    assert!(!world.log().contains("sk-canary-run") && !world.log().contains(ADMIN_KEY));
}
