//! nested commits repositories inside the work. The naive `git status` in their directory runs what they name.

use runner_git::{RelayPolicy, RelayRule};

use crate::{
    agent::{Agent, plain_git},
    canary::Canary,
    world::World,
};

/// Repository inside the work.
struct Vector {
    name: &'static str,
    plant: fn(&Agent, &Canary),
}

fn settings(canary: &Canary) -> String {
    let program = canary.shown();
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n"
    )
}

const VECTORS: &[Vector] = &[
    Vector {
        name: "bare repository",
        plant: |a, c| {
            a.write("d/HEAD", "ref: refs/heads/main\n");
            a.write("d/config", settings(c));
            a.write("d/objects/keep", "");
            a.write("d/refs/keep", "");
        },
    },
    Vector {
        name: "repository with its parts elsewhere",
        plant: |a, c| {
            a.write("d/HEAD", "ref: refs/heads/main\n");
            a.write("d/commondir", "../e\n");
            a.write("d/config.worktree", "[core]\n\tbare = false\n\tworktree = .\n");
            let program = c.shown();
            let core = format!("[core]\n\trepositoryformatversion = 1\n\tfsmonitor = {program}\n");
            a.write("e/config", format!("{core}[extensions]\n\tworktreeConfig = true\n"));
            a.write("e/objects/keep", "");
            a.write("e/refs/keep", "");
        },
    },
];

/// Runs one vector, and returns what is wrong.
async fn fault_of(vector: &Vector, world: &World) -> Option<String> {
    let canary = Canary::new(&world.dir);
    let agent = world.agent().await;
    (vector.plant)(&agent, &canary);
    agent.commit("Work");
    canary.ran();
    plain_git(&agent.home, &agent.dir.join("d")).arg("status").output().expect("git starts");
    if !canary.ran() {
        return Some("its control does not run it".to_owned());
    }
    agent.bundle(&world.bundle_file());
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    let refused = relayed.rules().contains(&RelayRule::NestedRepository);
    (!refused).then(|| format!("{relayed:?}"))
}

#[tokio::test]
async fn a_repository_in_the_work_is_refused() {
    let world = World::new();
    let mut faults = Vec::new();
    for vector in VECTORS {
        faults.extend(fault_of(vector, &world).await.map(|fault| format!("{}: {fault}", vector.name)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
