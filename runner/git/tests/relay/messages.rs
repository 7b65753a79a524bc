//! messages commits texts that act on their readers. The naive push publishes each; the relay takes the effect out.

use runner_git::{RelayRule, RelayVerdict};

use crate::{
    agent::{Agent, done, plain_git},
    contents::token,
    world::{Relayed, World, push_order},
};

/// Message with a mention and a keyword that closes an issue.
const ACTING: &str = "Fix #1, thanks @everyone\n\nSigned-off-by: A B <a@b.org>";
/// The same without effects.
const HARMLESS: &str = "Fix # 1, thanks @ everyone\n\nSigned-off-by: A B <a@b.org>";

fn shown(world: &World, format: &str) -> String {
    let format = format!("--format={format}");
    done(plain_git(&world.home, &world.upstream).args(["log", &format, "main..sandbox/run-1"]))
}

/// Commits on a side branch, and merges it, so that a commit has two parents that are written anew.
fn merge_side(agent: &Agent) {
    agent.run(&["checkout", "--quiet", "-b", "side"]);
    agent.write("side.txt", "side\n");
    agent.commit(ACTING);
    agent.run(&["checkout", "--quiet", "sandbox/run-1"]);
    agent.write("own.txt", "own\n");
    agent.commit("See GH-7");
    agent.run(&["merge", "--quiet", "--no-ff", "-m", "Merge side", "side"]);
}

#[tokio::test]
async fn messages_lose_their_effects() {
    let world = World::new();
    let agent = world.agent().await;
    merge_side(&agent);
    let files = agent.run(&["rev-parse", "HEAD^{tree}"]);
    assert!(agent.run(&["log", "--format=%B"]).contains("@everyone"), "control");
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(_)), "{relayed:?}");
    let mut messages: Vec<_> =
        shown(&world, "%B%x00").split('\0').map(|text| text.trim().to_owned()).collect();
    messages.retain(|message| !message.is_empty());
    messages.sort();
    assert_eq!(messages, [HARMLESS, "Merge side", "See GH- 7"]);
    assert_eq!(shown(&world, "%T").lines().next(), Some(files.as_str()), "the files are the same");
    assert_eq!(shown(&world, "%P").lines().next().map(|parents| parents.split(' ').count()), Some(2));
}

#[tokio::test]
async fn names_of_people_lose_their_effects() {
    let world = World::new();
    let agent = world.agent().await;
    agent.write("work.txt", "work\n");
    agent.run(&["add", "-A"]);
    let author = "--author=Maintainer\u{202e}\u{1b}[31m @octocat <a\u{200b}@b.org>";
    agent.run(&["commit", "--quiet", author, "-m", "Work"]);
    assert!(agent.run(&["log", "-1", "--format=%an"]).contains('\u{202e}'), "control");
    world.relay(&agent).await;
    assert_eq!(shown(&world, "%an <%ae>").trim(), "Maintainer @ octocat <a@b.org>");
}

#[tokio::test]
async fn the_same_work_has_the_same_commits() {
    let world = World::new();
    let agent = world.agent().await;
    merge_side(&agent);
    agent.bundle(&world.bundle_file());
    let mut tips = Vec::new();
    for _ in 0..2 {
        let (quarantine, _received) = world.collect(&world.git, &agent).await;
        let work = World::accepted(&quarantine).await;
        assert_eq!(work.commits(), 3);
        quarantine.push(&world.remote, &push_order(&agent, &work)).await.expect("git runs");
        tips.push(work.tip().to_string());
    }
    assert_eq!(tips[0], tips[1]);
    assert_ne!(tips[0], agent.tip(), "control: they are written anew");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(tips[0].clone()));
    let next = world.agent().await;
    assert_eq!(next.clone.start.as_str(), tips[0], "the next run goes on from them");
}

#[tokio::test]
async fn what_is_not_seen_hides_no_token() {
    let world = World::new();
    let agent = world.agent().await;
    let token = token();
    let hidden = [&token[..9], &token[9..]].join("\u{200b}");
    agent.write("work.txt", "work\n");
    agent.commit(&format!("Use {hidden}"));
    agent.bundle(&world.bundle_file());
    let (quarantine, _received) = world.collect(&world.git, &agent).await;
    let verdict = quarantine.judge(&Default::default()).await.expect("it is judged");
    let RelayVerdict::Refused(objections) = &verdict else { panic!("{verdict:?}") };
    assert_eq!(objections.iter().map(|it| it.rule).collect::<Vec<_>>(), [RelayRule::Secret]);
    assert!(!format!("{verdict:?}").contains(&token));
}
