//! flow tests the life of a branch: it begins, goes on from its tip, moves elsewhere, or is refused.

use std::{fs, num::NonZeroU32};

use runner_git::{
    AgentClone, BaseBranch, CloneDepth, Error, Git, PushOrder, PushOutcome, Quarantine, RelayPolicy,
    RemoteFailure,
};

use crate::{
    agent::{done, plain_git},
    canary::write_program,
    world::{Relayed, World, push_order},
};

#[tokio::test]
async fn a_branch_goes_on_from_its_tip() {
    let world = World::new();
    let first = world.agent().await;
    assert_eq!(first.clone.remote_tip, None);
    assert_eq!(first.run(&["rev-list", "--count", "HEAD"]), "1", "the clone is shallow");
    let tip = first.work();
    world.relay(&first).await;
    let second = world.agent().await;
    assert_eq!(second.clone.start.as_str(), tip);
    assert_eq!(second.clone.remote_tip.as_ref(), Some(&second.clone.start));
    second.write("more.txt", "more\n");
    let tip = second.commit("More");
    let relayed = world.relay(&second).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(tip));
}

#[tokio::test]
async fn a_branch_that_moved_stays_as_it_is() {
    let world = World::new();
    let first = world.agent().await;
    let second = world.agent().await;
    let tip = first.work();
    world.relay(&first).await;
    second.write("other.txt", "other\n");
    second.commit("Other");
    let relayed = world.relay(&second).await;
    let moved = matches!(&relayed, Relayed::Pushed(PushOutcome::BranchMoved { found: Some(found) }) if found.as_str() == tip);
    assert!(moved, "{relayed:?}");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(tip));
}

#[tokio::test]
async fn a_push_is_made_once() {
    let world = World::new();
    let agent = world.agent().await;
    agent.work();
    agent.bundle(&world.bundle_file());
    let (quarantine, _received) = world.collect(&world.git, &agent).await;
    let work = World::accepted(&quarantine).await;
    assert_eq!([work.commits(), work.files()], [1, 1]);
    let order = push_order(&agent, &work);
    assert_eq!(quarantine.push(&world.remote, &order).await.unwrap(), PushOutcome::Pushed);
    // A process that was killed after the push opens the quarantine again.
    let again = Quarantine::open(&world.git, &world.dir.join("quarantine.git")).unwrap();
    assert_eq!(again.push(&world.remote, &order).await.unwrap(), PushOutcome::AlreadyThere);
    // A verdict that was stored for other work.
    let mut stored = serde_json::to_value(&work).unwrap();
    stored["tip"] = stored["start"].clone();
    let other = push_order(&agent, &serde_json::from_value(stored).unwrap());
    let refused = again.push(&world.remote, &other).await;
    assert!(matches!(refused, Err(Error::NotCollected { .. })), "{refused:?}");
    again.remove().unwrap();
    assert!(!world.dir.join("quarantine.git").exists());
}

#[tokio::test]
async fn work_on_another_start_is_not_pushed() {
    let world = World::new();
    let first = world.agent().await;
    let second = world.agent().await;
    let tip = first.work();
    world.relay(&first).await;
    second.write("other.txt", "other\n");
    second.commit("Other");
    second.bundle(&world.bundle_file());
    let (quarantine, _received) = world.collect(&world.git, &second).await;
    let work = World::accepted(&quarantine).await;
    // The lease alone would let it replace the first one's commit.
    let found = world.mirror().await.sandbox_tip(&World::branch()).await.unwrap();
    assert_eq!(found.as_ref().map(ToString::to_string), Some(tip.clone()));
    let order = PushOrder::new(&work, World::branch(), found.clone());
    let outcome = quarantine.push(&world.remote, &order).await.unwrap();
    assert_eq!(outcome, PushOutcome::BranchMoved { found });
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(tip));
}

#[tokio::test]
async fn a_repository_above_the_home_is_not_read() {
    let world = World::new();
    done(plain_git(&world.home, &world.dir).args(["init", "--quiet"]));
    let elsewhere = format!("url.file:///nowhere{}.insteadOf", world.upstream.display());
    let address = format!("file://{}", world.upstream.display());
    done(plain_git(&world.home, &world.dir).args(["config", &elsewhere, &address]));
    let mut naive = plain_git(&world.home, &world.dir);
    let naive = naive.args(["ls-remote", &address]).output().unwrap();
    assert!(!naive.status.success(), "the control asks elsewhere");
    let agent = world.agent().await;
    agent.work();
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
}

#[tokio::test]
async fn a_remote_may_refuse_in_its_own_words() {
    let world = World::new();
    let hook = world.upstream.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write_program(&hook, "#!/bin/sh\nexit 1\n");
    let agent = world.agent().await;
    agent.work();
    let relayed = world.relay(&agent).await;
    let refused = matches!(&relayed, Relayed::Pushed(PushOutcome::Failed(RemoteFailure::Refused { reason })) if reason.contains("pre-receive"));
    assert!(refused, "{relayed:?}");
}

#[tokio::test]
async fn work_is_pushed_while_the_base_moves_on() {
    let world = World::new();
    let agent = world.agent().await;
    let other = world.dir.join("people");
    done(plain_git(&world.home, &world.dir).args(["clone", "--quiet"]).arg(&world.upstream).arg(&other));
    done(plain_git(&world.home, &other).args(["commit", "--quiet", "--allow-empty", "-m", "Third"]));
    done(plain_git(&world.home, &other).args(["push", "--quiet"]));
    agent.work();
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
}

#[tokio::test]
async fn an_agent_may_see_the_whole_history() {
    let world = World::new();
    let mut order = World::order();
    order.depth = CloneDepth::Full;
    let clone = AgentClone::make(&world.mirror().await, &world.dir.join("full"), &order).await.unwrap();
    let count = |dir| done(plain_git(&world.home, dir).args(["rev-list", "--count", "HEAD"]));
    assert_eq!(count(&clone.dir), "2");
    order.depth = CloneDepth::Shallow(NonZeroU32::MIN);
    let clone = AgentClone::make(&world.mirror().await, &world.dir.join("shallow"), &order).await.unwrap();
    assert_eq!(count(&clone.dir), "1");
    let status = done(plain_git(&world.home, &clone.dir).args(["status", "--porcelain"]));
    assert_eq!(status, "", "the files are those of the commit");
}

#[tokio::test]
async fn a_missing_base_is_named() {
    let world = World::new();
    let base = BaseBranch::parse("none").unwrap();
    let missing = world.cache.refresh(&world.remote, &base).await;
    assert!(matches!(missing, Err(Error::NoBase { .. })), "{missing:?}");
}

#[tokio::test]
async fn a_clone_needs_an_empty_directory() {
    let world = World::new();
    let dest = world.dir.join("dest");
    fs::create_dir(&dest).unwrap();
    fs::write(dest.join("file"), "x").unwrap();
    assert!(AgentClone::make(&world.mirror().await, &dest, &World::order()).await.is_err());
    assert_eq!(fs::read(dest.join("file")).unwrap(), b"x");
}

#[tokio::test]
async fn a_home_with_files_is_refused() {
    let world = World::new();
    fs::write(world.dir.join("home/.gitconfig"), "").unwrap();
    let located = Git::locate(&world.dir.join("home"));
    assert!(matches!(located, Err(Error::HomeNotEmpty { .. })), "{located:?}");
}

#[tokio::test]
async fn a_small_change_is_relayed_in_time() {
    let world = World::new();
    let agent = world.agent().await;
    agent.work();
    agent.bundle(&world.bundle_file());
    let began = std::time::Instant::now();
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    let took = began.elapsed();
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
    // The aim is 1.5 s; a machine under load gets more.
    assert!(took.as_secs() < 10, "{took:?}");
    println!("a small change took {took:?}");
}
