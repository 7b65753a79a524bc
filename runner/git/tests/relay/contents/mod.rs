//! contents commits what a remote or its readers suffer from. The naive push publishes each; the relay names the rule.

mod commits;
mod vectors;

use platform_core::{limit::ByteSize, secret::Secret};
use runner_git::{ProcessBounds, ProtectedPaths, RelayPolicy, SecretScan, WorkBounds};

pub(crate) use self::commits::token;
use self::{
    commits::{CANARY, file},
    vectors::{VECTORS, Vector},
};
use crate::world::{Relayed, World};

/// Most bytes of a file, where a vector lowers the limit.
const SMALL: ByteSize = ByteSize::mib(1);
/// Most bytes of all files, where a vector lowers the limit.
const SMALL_TOTAL: ByteSize = ByteSize::mib(8);
/// Bytes of git's output that are read, so that a bomb is found soon.
const OUTPUT: ByteSize = ByteSize::mib(8);

/// Memory of git, so that a bomb fills it soon.
const MEMORY: ByteSize = ByteSize::mib(512);

fn policy() -> RelayPolicy {
    let bounds = WorkBounds { commits: 20, file: SMALL, total: SMALL_TOTAL, ..WorkBounds::default() };
    let protected = ProtectedPaths::with(&["/infra/".to_owned()]).expect("it is a pattern");
    let secrets = SecretScan::new(vec![Secret::new(CANARY.to_owned())]);
    RelayPolicy { bounds, protected, secrets }
}

async fn fault_of(vector: &Vector, world: &World, policy: &RelayPolicy) -> Option<String> {
    let agent = world.agent().await;
    (vector.commit)(&agent);
    let naive = world.copy_of_remote("naive");
    let naive = agent.naive(&["push", "--quiet", &naive.display().to_string(), "HEAD:refs/heads/naive"]);
    if !naive.status.success() {
        return Some(format!("its control is refused: {}", String::from_utf8_lossy(&naive.stderr)));
    }
    agent.bundle(&world.bundle_file());
    let bounds = ProcessBounds { output: OUTPUT, memory: MEMORY, ..ProcessBounds::default() };
    let relayed = world.relay_with(&world.git.clone().with_bounds(bounds), &agent, policy).await;
    if world.remote_tip("sandbox/run-1").is_some() {
        return Some("it was pushed".to_owned());
    }
    let shown = format!("{relayed:?}");
    if shown.contains(&token()) || shown.contains(CANARY) {
        return Some("the objection shows the secret".to_owned());
    }
    let expected = relayed.rules().contains(&vector.rule);
    (!expected).then(|| format!("expected {:?}, got {relayed:?}", vector.rule))
}

#[tokio::test]
async fn harmful_content_is_refused_by_its_rule() {
    let policy = policy();
    let world = World::new();
    let mut faults = Vec::new();
    for vector in VECTORS {
        faults
            .extend(fault_of(vector, &world, &policy).await.map(|fault| format!("{}: {fault}", vector.name)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn useful_content_is_accepted() {
    let world = World::new();
    let agent = world.agent().await;
    agent.write("src/new file.txt", "ä ö\n");
    agent.write("src/Screenshot at 9.41.12\u{202f}PM.png", "a screenshot of macOS\n");
    agent.write("src/run.sh", "#!/bin/sh\n");
    agent.run(&["add", "-A"]);
    agent.run(&["update-index", "--chmod=+x", "src/run.sh"]);
    std::os::unix::fs::symlink("../README.md", agent.dir.join("src/link")).expect("a link is made");
    agent.commit("Add files");
    agent.run(&["checkout", "--quiet", "-b", "side"]);
    file(&agent, "side.txt", "side\n");
    agent.run(&["checkout", "--quiet", "sandbox/run-1"]);
    file(&agent, "README.md", "Hello again\n");
    agent.run(&["merge", "--quiet", "--no-ff", "-m", "Merge side", "side"]);
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(_)), "{relayed:?}");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(agent.tip()));
}
