//! host_files plants ways to other files, other objects and other remotes. The naive command goes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use runner_git::{PushOutcome, RelayPolicy};

use crate::{
    agent::{Agent, done, plain_git},
    world::{Relayed, World},
};

/// Content of another account.
const FOREIGN: &str = "secret of another account\n";

/// Makes the repository of another account, with one commit, and returns its directory.
fn other_account(world: &World) -> PathBuf {
    let dir = world.dir.join("other-account");
    done(plain_git(&world.home, &world.dir).args(["init", "--quiet", "--initial-branch=main"]).arg(&dir));
    fs::write(dir.join("foreign.txt"), FOREIGN).expect("it is written");
    done(plain_git(&world.home, &dir).args(["add", "-A"]));
    done(plain_git(&world.home, &dir).args(["commit", "--quiet", "-m", "Foreign"]));
    dir
}

fn has_foreign_content(world: &World, repository: &Path) -> bool {
    let mut git = plain_git(&world.home, repository);
    let listed = git.args(["rev-list", "--objects", "--all"]).output().expect("git starts");
    String::from_utf8_lossy(&listed.stdout).contains("foreign.txt")
}

#[tokio::test]
async fn objects_of_another_account_stay_there() {
    let world = World::new();
    let other = other_account(&world);
    let agent = world.agent().await;
    agent.work();
    agent.plant("objects/info/alternates", &format!("{}\n", other.join(".git/objects").display()));
    let blob = done(plain_git(&world.home, &other).args(["rev-parse", "HEAD:foreign.txt"]));
    agent.commit_entries(&[("100644", b"foreign.txt", &blob)]);
    let naive = world.copy_of_remote("naive");
    agent.run(&["push", "--quiet", &naive.display().to_string(), "HEAD:refs/heads/naive"]);
    assert!(has_foreign_content(&world, &naive), "the control publishes it");
    // In the container that makes the bundle, the other account's directory does not exist.
    let away = world.dir.join("away");
    fs::rename(&other, &away).expect("it is moved");
    let range = format!("{}..{}", agent.clone.start, agent.branch());
    let bundle = world.bundle_file().display().to_string();
    let bundled = agent.naive(&["bundle", "create", "--quiet", &bundle, &range]);
    fs::rename(&away, &other).expect("it is moved back");
    assert!(!bundled.status.success(), "nothing to take");
    assert!(!has_foreign_content(&world, &world.upstream));
}

#[tokio::test]
async fn a_bundle_cannot_name_objects_it_lacks() {
    let world = World::new();
    let other = other_account(&world);
    let agent = world.agent().await;
    let blob = done(plain_git(&world.home, &other).args(["rev-parse", "HEAD:foreign.txt"]));
    // The agent guesses the name of an object that it cannot read.
    let tree = agent.tree(&[("100644", b"foreign.txt", &blob)]);
    agent.commit_tree(&tree);
    let tip = agent.tip();
    let pack = crate::agent::fed_bytes(
        agent.git().args(["pack-objects", "--stdout", "--quiet"]),
        format!("{tip}\n{tree}\n").as_bytes(),
    );
    let header = format!("# v2 git bundle\n-{} x\n{tip} {}\n\n", agent.clone.start, agent.branch());
    fs::write(world.bundle_file(), [header.as_bytes(), &pack].concat()).expect("it is written");
    let naive = world.dir.join("naive.git");
    done(
        plain_git(&world.home, &world.dir)
            .args(["clone", "--quiet", "--bare"])
            .arg(&world.upstream)
            .arg(&naive),
    );
    fs::write(naive.join("objects/info/alternates"), format!("{}\n", other.join(".git/objects").display()))
        .expect("it is written");
    let mut fetch = plain_git(&world.home, &naive);
    done(fetch.args(["fetch", "--quiet"]).arg(world.bundle_file()).arg("+refs/*:refs/*"));
    assert!(has_foreign_content(&world, &naive), "a host that shares objects publishes it");
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    assert_eq!(relayed.rules(), [runner_git::RelayRule::DamagedObjects], "{relayed:?}");
}

#[tokio::test]
async fn a_planted_work_tree_publishes_no_host_file() {
    let world = World::new();
    let host = world.dir.join("host-files");
    fs::create_dir(&host).expect("it is made");
    fs::write(host.join("foreign.txt"), FOREIGN).expect("it is written");
    let agent = world.agent().await;
    let tip = agent.work();
    agent.config("core.worktree", &host.display().to_string());
    agent.bundle(&world.bundle_file());
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(tip));
    let naive = world.copy_of_remote("naive");
    agent.run(&["add", "-A"]);
    agent.run(&["commit", "--quiet", "-m", "Collect"]);
    agent.run(&["push", "--quiet", &naive.display().to_string(), "HEAD:refs/heads/naive"]);
    assert!(has_foreign_content(&world, &naive), "the control publishes it");
    assert!(!has_foreign_content(&world, &world.upstream));
}

/// Setting that sends a push elsewhere: its name and value, for the addresses of the remote and of the attacker.
struct Diversion {
    name: fn(&str) -> String,
    value: fn(&str, &str) -> String,
    target: fn(&str) -> String,
}

fn has_branch(world: &World, repository: &Path) -> bool {
    let mut git = plain_git(&world.home, repository);
    git.args(["rev-parse", "--verify", "--quiet", "sandbox/run-1"])
        .output()
        .expect("git starts")
        .status
        .success()
}

async fn is_diverted(agent: &Agent, world: &World, diversion: &Diversion) {
    let thief = world.copy_of_remote("thief");
    let thief_url = format!("file://{}", thief.display());
    let own = world.remote.url.as_str();
    agent.config("remote.origin.url", own);
    agent.config(&(diversion.name)(&thief_url), &(diversion.value)(own, &thief_url));
    agent.bundle(&world.bundle_file());
    let relayed = world.relay_bundle(agent, &RelayPolicy::default()).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
    assert!(has_branch(world, &world.upstream) && !has_branch(world, &thief));
    agent.run(&["push", "--quiet", &(diversion.target)(own), &format!("HEAD:{}", agent.branch())]);
    assert!(has_branch(world, &thief), "the control goes to the thief");
}

#[tokio::test]
async fn a_push_cannot_be_sent_elsewhere() {
    for diversion in [
        Diversion {
            name: |thief| format!("url.{thief}.pushInsteadOf"),
            value: |own, _| own.to_owned(),
            target: str::to_owned,
        },
        Diversion {
            name: |thief| format!("url.{thief}.insteadOf"),
            value: |own, _| own.to_owned(),
            target: str::to_owned,
        },
        Diversion {
            name: |_| "remote.origin.pushurl".to_owned(),
            value: |_, thief| thief.to_owned(),
            target: |_| "origin".to_owned(),
        },
    ] {
        let world = World::new();
        let agent = world.agent().await;
        agent.work();
        is_diverted(&agent, &world, &diversion).await;
    }
}

#[tokio::test]
async fn a_writer_after_the_stop_changes_nothing() {
    let world = World::new();
    let agent = world.agent().await;
    let judged = agent.work();
    agent.bundle(&world.bundle_file());
    let (quarantine, _received) = world.collect(&world.git, &agent).await;
    let verdict = quarantine.judge(&RelayPolicy::default()).await.expect("it is judged");
    // The agent goes on, and writes into the bundle, too.
    agent.write(".github/workflows/ci.yml", "on: push\n");
    let late = agent.commit("Late");
    agent.bundle(&world.bundle_file());
    let runner_git::RelayVerdict::Accepted(work) = verdict else { panic!("{verdict:?}") };
    let order = crate::world::push_order(&agent, &work);
    let outcome = quarantine.push(&world.remote, &order).await.expect("git runs");
    assert_eq!(outcome, PushOutcome::Pushed);
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(judged));
    let naive = world.copy_of_remote("naive");
    agent.run(&["push", "--quiet", &naive.display().to_string(), &format!("HEAD:{}", agent.branch())]);
    let published = done(plain_git(&world.home, &naive).args(["rev-parse", "sandbox/run-1"]));
    assert_eq!(published, late, "the control publishes what was never judged");
}

#[tokio::test]
async fn quarantine_and_clone_share_nothing() {
    let world = World::new();
    let agent = world.agent().await;
    agent.work();
    agent.bundle(&world.bundle_file());
    let (_quarantine, _received) = world.collect(&world.git, &agent).await;
    for dir in [world.dir.join("quarantine.git"), agent.dir.join(".git")] {
        assert!(!dir.join("objects/info/alternates").exists());
        let mut linked = std::process::Command::new("find");
        let linked = linked.arg(&dir).args(["-type", "f", "-links", "+1"]);
        assert_eq!(done(linked), "", "no file has a second name");
    }
    let settings = fs::read_to_string(agent.dir.join(".git/config")).expect("it has settings");
    assert!(!settings.contains("remote") && !settings.contains("file://"), "{settings}");
    assert_eq!(agent.run(&["symbolic-ref", "HEAD"]), agent.branch());
    let mut search = std::process::Command::new("grep");
    let hits = search.args(["-rIl", "cache/"]).arg(agent.dir.join(".git")).output().expect("grep starts");
    assert_eq!(String::from_utf8_lossy(&hits.stdout), "", "no trace of the host's directories");
}
