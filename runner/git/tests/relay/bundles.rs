//! bundles sends bundles that lie, are damaged or hold more than they should. The naive fetch takes what it is given.

use std::{fs, path::Path};

use runner_git::{RelayPolicy, RelayRule};

use crate::{
    agent::{Agent, done, plain_git},
    world::{Relayed, World},
};

/// Bundle of a hostile agent.
struct Vector {
    name: &'static str,
    /// Writes it, in a repository with one commit of the agent.
    make: fn(&Agent, &Path),
    rule: RelayRule,
    /// Behaviour of the naive fetch. Git itself refuses damaged ones, but only once it has read them.
    naive: Naive,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Naive {
    Accepts,
    Refuses,
}

fn bundle(agent: &Agent, to: &Path, references: &[&str]) {
    let start = format!("^{}", agent.clone.start);
    done(agent.git().args(["bundle", "create", "--quiet"]).arg(to).args(references).arg(start));
}

/// Makes the bundle that the product makes, and changes its header.
fn with_header(agent: &Agent, to: &Path, change: impl FnOnce(String) -> String) {
    agent.bundle(to);
    let content = fs::read(to).expect("it was made");
    let end = content.windows(2).position(|pair| pair == b"\n\n").expect("it has a header");
    let header = String::from_utf8(content[..end].to_vec()).expect("it is text");
    fs::write(to, [change(header).as_bytes(), &content[end..]].concat()).expect("it is written");
}

/// Makes the bundle that the product makes, and changes its bytes.
fn with_bytes(agent: &Agent, to: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    agent.bundle(to);
    let mut content = fs::read(to).expect("it was made");
    change(&mut content);
    fs::write(to, content).expect("it is written");
}

const VECTORS: &[Vector] = &[
    Vector {
        name: "further branch",
        make: |a, to| {
            a.run(&["branch", "main"]);
            bundle(a, to, &[&a.branch(), "refs/heads/main"]);
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "other branch",
        make: |a, to| {
            a.run(&["branch", "main"]);
            bundle(a, to, &["refs/heads/main"]);
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "tag",
        make: |a, to| {
            a.run(&["tag", "v1"]);
            bundle(a, to, &[&a.branch(), "refs/tags/v1"]);
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "replacement",
        make: |a, to| {
            a.run(&["update-ref", "refs/replace/0123456789012345678901234567890123456789", "HEAD"]);
            bundle(a, to, &[&a.branch(), "refs/replace/0123456789012345678901234567890123456789"]);
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "pull request of another",
        make: |a, to| {
            with_header(a, to, |header| header.replace("refs/heads/sandbox/run-1", "refs/pull/7/head"))
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "branch that leads upwards",
        make: |a, to| with_header(a, to, |header| header.replace("sandbox/run-1", "sandbox/../main")),
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "branch like an option",
        make: |a, to| {
            with_header(a, to, |header| header.replace("refs/heads/sandbox/run-1", "--upload-pack=x"))
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "same branch twice",
        make: |a, to| {
            with_header(a, to, |header| {
                let line = header.lines().last().expect("it has a branch").to_owned();
                format!("{header}\n{line}")
            });
        },
        rule: RelayRule::BundleReference,
        naive: Naive::Accepts,
    },
    Vector {
        name: "prerequisite that nothing has",
        make: |a, to| {
            with_header(a, to, |header| {
                let lie = "0123456789012345678901234567890123456789";
                let start = a.clone.start.as_str();
                header.replacen(&format!("-{start}"), &format!("-{lie} lie\n-{start}"), 1)
            });
        },
        rule: RelayRule::BundlePrerequisite,
        naive: Naive::Refuses,
    },
    Vector {
        name: "prerequisite left out",
        make: |a, to| {
            with_header(a, to, |header| {
                header.lines().filter(|line| !line.starts_with('-')).collect::<Vec<_>>().join("\n")
            });
        },
        rule: RelayRule::BundlePrerequisite,
        naive: Naive::Accepts,
    },
    Vector {
        name: "history of its own",
        make: |a, to| {
            let tree = a.run(&["rev-parse", "HEAD^{tree}"]);
            let root = a.run(&["commit-tree", &tree, "-m", "Root"]);
            a.run(&["update-ref", &a.branch(), &root]);
            done(a.git().args(["bundle", "create", "--quiet"]).arg(to).arg(a.branch()));
        },
        rule: RelayRule::BundlePrerequisite,
        naive: Naive::Accepts,
    },
    Vector {
        name: "graft that hides a history of its own",
        make: |a, to| {
            let tree = a.run(&["rev-parse", "HEAD^{tree}"]);
            let root = a.run(&["commit-tree", &tree, "-m", "Root"]);
            a.plant("info/grafts", &format!("{root} {}\n", a.clone.start));
            a.run(&["update-ref", &a.branch(), &root]);
            a.bundle(to);
        },
        rule: RelayRule::OtherHistory,
        naive: Naive::Accepts,
    },
    Vector {
        name: "filter",
        make: |a, to| {
            with_header(a, to, |header| {
                header.replacen(
                    "# v2 git bundle",
                    "# v3 git bundle\n@object-format=sha1\n@filter=blob:none",
                    1,
                )
            });
        },
        rule: RelayRule::BundleForm,
        naive: Naive::Accepts,
    },
    Vector {
        name: "unknown version",
        make: |a, to| with_header(a, to, |header| header.replacen("v2", "v9", 1)),
        rule: RelayRule::BundleForm,
        naive: Naive::Refuses,
    },
    Vector {
        name: "missing pack",
        make: |a, to| {
            with_bytes(a, to, |content| {
                let end = content.windows(2).position(|pair| pair == b"\n\n").expect("it has a header");
                content.truncate(end + 2);
            });
        },
        rule: RelayRule::BundleForm,
        naive: Naive::Refuses,
    },
    Vector {
        name: "cut pack",
        make: |a, to| with_bytes(a, to, |content| content.truncate(content.len() - 30)),
        rule: RelayRule::DamagedObjects,
        naive: Naive::Refuses,
    },
    Vector {
        name: "changed byte",
        make: |a, to| {
            with_bytes(a, to, |content| {
                let at = content.len() - 40;
                content[at] ^= 0x55;
            });
        },
        rule: RelayRule::DamagedObjects,
        naive: Naive::Refuses,
    },
    Vector {
        name: "thousand million objects",
        make: |a, to| {
            with_bytes(a, to, |content| {
                let at = content.windows(4).position(|four| four == b"PACK").expect("it has a pack");
                content[at + 8..at + 12].copy_from_slice(&[0x40, 0, 0, 0]);
            });
        },
        rule: RelayRule::BundleSize,
        naive: Naive::Refuses,
    },
    Vector {
        name: "branch at a tag",
        make: |a, to| {
            a.run(&["tag", "-a", "-m", "tag", "v1"]);
            let tag = a.run(&["rev-parse", "v1"]);
            bundle(a, to, &["v1"]);
            let content = fs::read(to).expect("it was made");
            let end = content.windows(2).position(|pair| pair == b"\n\n").expect("it has a header");
            let header = String::from_utf8_lossy(&content[..end]).replace("refs/tags/v1", &a.branch());
            assert!(header.contains(&tag), "{header}");
            fs::write(to, [header.as_bytes(), &content[end..]].concat()).expect("it is written");
        },
        rule: RelayRule::NoCommit,
        naive: Naive::Refuses,
    },
];

async fn fault_of(vector: &Vector, world: &World) -> Option<String> {
    let agent = world.agent().await;
    agent.work();
    (vector.make)(&agent, &world.bundle_file());
    let naive = world.copy_of_remote("naive");
    let mut fetch = plain_git(&world.home, &naive);
    let fetched =
        fetch.arg("fetch").arg(world.bundle_file()).arg("+refs/*:refs/*").output().expect("git starts");
    if fetched.status.success() != (vector.naive == Naive::Accepts) {
        let messages = String::from_utf8_lossy(&fetched.stderr).into_owned();
        return Some(format!("its control says {}: {messages}", fetched.status));
    }
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    if world.remote_tip("sandbox/run-1").is_some()
        || world.remote_tip("main") != Some(agent.clone.start.to_string())
    {
        return Some("it was pushed".to_owned());
    }
    (relayed.rules() != [vector.rule]).then(|| format!("expected {:?}, got {relayed:?}", vector.rule))
}

#[tokio::test]
async fn bundles_that_lie_are_refused_by_their_rule() {
    let world = World::new();
    let mut faults = Vec::new();
    for vector in VECTORS {
        faults.extend(fault_of(vector, &world).await.map(|fault| format!("{}: {fault}", vector.name)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn an_honest_bundle_is_taken() {
    let world = World::new();
    let agent = world.agent().await;
    fs::write(world.bundle_file(), "").expect("it is written");
    let relayed = world.relay_bundle(&agent, &RelayPolicy::default()).await;
    assert!(matches!(relayed, Relayed::Nothing), "git makes no bundle without a commit: {relayed:?}");
    agent.work();
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(_)), "{relayed:?}");
}
