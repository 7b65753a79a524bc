//! crates tests the manifests and the module graph: dependencies point down, and no loop exists.

use std::collections::{BTreeMap, BTreeSet};

use tidy::{
    file::SourceFile,
    modules::{self, Graph},
    sources::Repository,
};

/// The crates of this repository that each crate, by its directory, may depend on.
const BELOW: [(&str, &[&str]); 34] = [
    ("platform/core", &[]),
    ("platform/runtime", &["platform-core"]),
    ("platform/outbound", &["platform-core", "platform-runtime"]),
    ("gateway-bridge", &["platform-core", "platform-outbound", "platform-runtime"]),
    ("proxy", &["platform-core", "platform-outbound", "platform-runtime"]),
    ("runner/model", &["platform-core", "platform-runtime"]),
    ("runner/store", &["platform-core", "platform-runtime", "runner-model", "test-postgres"]),
    ("runner/docker", &["platform-core", "platform-runtime", "runner-model"]),
    ("runner/files", &["platform-core", "platform-runtime"]),
    ("runner/git", &["platform-core", "platform-runtime", "runner-files"]),
    ("runner/github", &["platform-core", "platform-outbound", "platform-runtime", "runner-git"]),
    ("runner/repos", &["platform-core", "platform-runtime", "runner-docker", "runner-git"]),
    ("runner/workspace", &["platform-core", "platform-runtime", "runner-files", "runner-model"]),
    ("runner/control-client", &["platform-core", "platform-outbound", "platform-runtime", "runner-model"]),
    ("runner/audit", &["platform-core", "platform-runtime"]),
    (
        "runner/gateways",
        &[
            "platform-core",
            "platform-outbound",
            "platform-runtime",
            "gateway-bridge",
            "runner-files",
            "runner-model",
            "runner-docker",
            "runner-store",
            "runner-workspace",
            "runner-control-client",
        ],
    ),
    (
        "runner/telemetry",
        &[
            "platform-core",
            "platform-outbound",
            "platform-runtime",
            "runner-model",
            "runner-store",
            "runner-control-client",
        ],
    ),
    (
        "runner/connections",
        &[
            "platform-core",
            "platform-outbound",
            "platform-runtime",
            "runner-github",
            "runner-model",
            "runner-store",
            "runner-telemetry",
        ],
    ),
    (
        "runner/mcp",
        &["platform-core", "platform-outbound", "platform-runtime", "runner-connections", "runner-docker"],
    ),
    (
        "runner/tools",
        &[
            "platform-core",
            "platform-outbound",
            "platform-runtime",
            "runner-connections",
            "runner-git",
            "runner-github",
            "runner-mcp",
            "runner-model",
            "runner-repos",
            "runner-store",
        ],
    ),
    ("runner/engine", &BELOW_ENGINE),
    (
        "runner/proposals",
        &[
            "platform-core",
            "platform-runtime",
            "runner-engine",
            "runner-git",
            "runner-github",
            "runner-model",
            "runner-store",
        ],
    ),
    (
        "runner/billing",
        &[
            "platform-core",
            "platform-runtime",
            "runner-control-client",
            "runner-engine",
            "runner-model",
            "runner-store",
            "runner-telemetry",
        ],
    ),
    (
        "runner/api",
        &[
            "gateway-bridge",
            "platform-core",
            "platform-runtime",
            "runner-audit",
            "runner-connections",
            "runner-control-client",
            "runner-docker",
            "runner-engine",
            "runner-files",
            "runner-gateways",
            "runner-model",
            "runner-proposals",
            "runner-repos",
            "runner-store",
            "runner-telemetry",
        ],
    ),
    ("runner/cli", &BELOW_CLI),
    ("services/cogni-tool", &["platform-core"]),
    ("services/git-sync", &["platform-core", "platform-runtime", "runner-git"]),
    ("services/sandbox-init", &["platform-core"]),
    ("bench", &[]),
    ("bench/peers/pingora", &[]),
    ("fuzz", &["platform-core", "proxy", "gateway-bridge"]),
    // Failpoints, what is stored, and which refusals have advice from the runner, the handle from the bridge; all else is
    // seen from outside. The way of commits out of a workspace leads through three crates that must not know each other.
    (
        "tests",
        &[
            "platform-core",
            "platform-runtime",
            "bench",
            "gateway-bridge",
            "runner-audit",
            "runner-docker",
            "runner-files",
            "runner-git",
            "runner-model",
            "runner-store",
            "test-postgres",
        ],
    ),
    ("tests/postgres", &["platform-runtime"]),
    // The settings' schema is compared with its file; all else is text here.
    ("tests/tidy", &["platform-runtime"]),
];

/// Crates below the engine. Billing and the API stand above it; tools stand beside it.
const BELOW_ENGINE: [&str; 15] = [
    "platform-core",
    "platform-runtime",
    "gateway-bridge",
    "runner-model",
    "runner-store",
    "runner-docker",
    "runner-files",
    "runner-git",
    "runner-github",
    "runner-repos",
    "runner-workspace",
    "runner-control-client",
    "runner-gateways",
    "runner-mcp",
    "runner-telemetry",
];

/// Crates below the command line: all of the control plane.
const BELOW_CLI: [&str; 22] = [
    "platform-core",
    "platform-outbound",
    "platform-runtime",
    "gateway-bridge",
    "runner-model",
    "runner-store",
    "runner-docker",
    "runner-files",
    "runner-git",
    "runner-github",
    "runner-repos",
    "runner-workspace",
    "runner-control-client",
    "runner-gateways",
    "runner-telemetry",
    "runner-connections",
    "runner-tools",
    "runner-engine",
    "runner-proposals",
    "runner-billing",
    "runner-audit",
    "runner-api",
];

fn repository() -> Repository {
    Repository::open().expect("the repository is read")
}

#[test]
fn crates_depend_only_downwards() {
    let repository = repository();
    let allowed = BTreeMap::from(BELOW);
    let own: BTreeSet<_> = repository.crates().iter().map(|each| each.name.as_str()).collect();
    let dirs: BTreeSet<_> = repository.crates().iter().map(|each| each.dir.as_str()).collect();
    assert_eq!(dirs, allowed.keys().copied().collect(), "the crates there are, and those this rule knows");
    for each in repository.crates() {
        let allowed: BTreeSet<_> = allowed[each.dir.as_str()].iter().copied().collect();
        let used: BTreeSet<_> = each.dependencies().into_iter().filter(|name| own.contains(name)).collect();
        let forbidden: Vec<_> = used.difference(&allowed).collect();
        assert!(forbidden.is_empty(), "{} must not depend on {forbidden:?}", each.dir);
    }
}

#[test]
fn every_crate_inherits_the_lints() {
    for each in repository().crates() {
        let lints = each.manifest.get("lints").and_then(|lints| lints.get("workspace"));
        let inherits = lints.and_then(toml::Value::as_bool);
        assert_eq!(inherits, Some(true), "{}/Cargo.toml does not inherit the workspace's lints", each.dir);
    }
}

/// Returns the packages of a lock file, each with its version.
fn versions(repository: &Repository, path: &str) -> Vec<(String, String)> {
    let lock: toml::Table =
        repository.text(path).expect("the lock file is read").parse().expect("it is TOML");
    let packages = lock["package"].as_array().expect("a lock file lists packages").iter();
    let text = |package: &toml::Value, key| package[key].as_str().expect("a package has both").to_owned();
    packages.map(|package| (text(package, "name"), text(package, "version"))).collect()
}

#[test]
fn fuzzed_versions_are_shipped_versions() {
    let repository = repository();
    let shipped = versions(&repository, "Cargo.lock");
    let fuzzed = versions(&repository, "fuzz/Cargo.lock");
    assert!(fuzzed.len() > 50, "fuzz/Cargo.lock lists what is fuzzed");
    for fuzzed in fuzzed {
        let other = shipped.iter().find(|(name, _)| *name == fuzzed.0);
        assert!(other.is_none() || shipped.contains(&fuzzed), "{fuzzed:?} in fuzz/Cargo.lock, but {other:?}");
    }
}

#[test]
fn no_modules_import_each_other_in_a_loop() {
    let repository = repository();
    for each in repository.crates() {
        let looped = modules::top_level(&repository, each).expect("every file parses").looped();
        assert!(
            looped.is_empty(),
            "{}: {looped:?} import each other in a loop; break it with a module below both",
            each.dir
        );
    }
}

#[test]
fn loop_rule_sees_loops_and_nothing_else() {
    let mut graph = Graph::default();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f"), ("f", "e"), ("g", "g")] {
        graph.connect(from, to);
    }
    let names = |group: &BTreeSet<String>| group.iter().cloned().collect::<String>();
    assert_eq!(graph.loops().iter().map(names).collect::<Vec<_>>(), ["abc", "ef"]);
}

#[test]
fn modules_are_named_after_their_files() {
    let repository = repository();
    for (path, module) in [
        ("proxy/src/lib.rs", ""),
        ("proxy/src/main.rs", ""),
        ("proxy/src/exchange/mod.rs", "exchange"),
        ("proxy/src/server/listener.rs", "server::listener"),
        ("tests/harness/lib.rs", ""),
        ("tests/harness/canary/docker.rs", "canary::docker"),
        ("tests/processes/security/attacks/mod.rs", "security::attacks"),
        ("bench/tests/peers.rs", ""),
        ("bench/tests/provider/client.rs", "client"),
        ("tests/tidy/src/bin/measure.rs", ""),
    ] {
        let file = SourceFile::new(path, "");
        let own = repository.crate_of(&file.path).expect("the file lies in a crate");
        assert_eq!(own.module_of(&file.path).join("::"), module, "{path}");
    }
}
