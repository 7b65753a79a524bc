//! imports tests which modules may name which: the hot path, the pure core, and whatever has one place.

use std::collections::BTreeSet;

use tidy::{Offender, crates::parent, file::SourceFile, imports, sources::Repository};

/// Control decides slowly and may wait; a call must not.
const CONTROL: [&str; 4] = ["crate::control", "crate::runs", "crate::data_plane_thread", "dashmap"];

/// Everything by which a pure crate would touch the world. Data types of `core::net` are allowed.
const IMPURE: [&str; 12] = [
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "tokio",
    "hyper",
    "tracing",
    "rustix",
    "getrandom",
];

const ENVIRONMENT: [&str; 4] = ["std::env::var", "std::env::var_os", "std::env::vars", "std::env::vars_os"];

/// Files that may read the environment: of the product, and of a sandbox, where there is nothing else to read. A build
/// script gets its directories from cargo that way, and a test the server that all tests of a run share.
const READERS: [&str; 5] = [
    "platform/runtime/src/config/mod.rs",
    "runner/api/build.rs",
    "services/cogni-tool/src/settings.rs",
    "services/sandbox-init/src/settings.rs",
    "tests/postgres/src/database.rs",
];

/// Functions that read a JSON text without bounds.
const UNBOUNDED_READERS: [&str; 5] = [
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
    "serde_json::Deserializer",
    "serde_json::de",
];

/// The module that speaks to Docker.
const DOCKER: &str = "runner/docker/src/docker/";

/// Parts of the harness that need foreign clients, which only `tests/clients` has.
const CLIENTS: [&str; 16] = [
    "harness::AiMock",
    "harness::Cases",
    "harness::Dashboard",
    "harness::LiteLlm",
    "harness::McpClient",
    "harness::OpenClaw",
    "harness::Sdk",
    "harness::browser",
    "harness::chat_clients",
    "harness::clients",
    "harness::coding_agents",
    "harness::dashboard",
    "harness::litellm",
    "harness::mcp_clients",
    "harness::openclaw",
    "harness::sdks",
];

/// Those that need Docker or Postgres, which `tests/containers` has, too.
const CONTAINERS: [&str; 6] = [
    "harness::DockerGate",
    "harness::docker",
    "harness::docker_gate",
    "harness::dockerd",
    "harness::store_lock",
    "test_postgres",
];

fn repository() -> Repository {
    Repository::open().expect("the repository is read")
}

fn reaching<'f>(
    repository: &Repository,
    files: impl Iterator<Item = &'f SourceFile>,
    banned: &[&str],
) -> Vec<Offender> {
    imports::reaching(repository, files, banned).expect("every file parses")
}

/// Returns what the rule sees in a source that would lie in the repository.
fn seen(repository: &Repository, source: &SourceFile, banned: &[&str]) -> Vec<String> {
    let found = reaching(repository, [source].into_iter(), banned);
    found.into_iter().map(|offender| offender.what).collect()
}

#[test]
fn hot_path_does_not_import_control() {
    let repository = repository();
    let is_hot = |path: &str| {
        ["exchange/", "server/", "usage/"].iter().any(|dir| path.starts_with(&format!("proxy/src/{dir}")))
    };
    let hot: Vec<_> = repository.rust().filter(|file| is_hot(&file.path)).collect();
    assert!(hot.len() > 40, "the hot path has moved: name its directories here");
    assert_eq!(reaching(&repository, hot.into_iter(), &CONTROL), [], "imports of control on the hot path");
}

#[test]
fn hot_path_rule_sees_every_form_of_import() {
    let repository = repository();
    for (source, expected) in [
        (
            "use crate::{refusal, data_plane_thread::GatewaySocket};",
            "crate::data_plane_thread::GatewaySocket",
        ),
        ("use super::super::{run::Run, runs::{self, Runs as R}};", "crate::runs"),
        ("use crate::control::*;", "crate::control::*"),
        ("use crate::*;", "crate::*"),
        ("use crate as own; fn f() { own::runs::open(); }", "crate::runs::open"),
        ("fn f(runs: &crate::runs::Runs) {}", "crate::runs::Runs"),
        ("fn f() { tracing::debug!(runs = crate::runs::count(), \"open\"); }", "crate::runs::count"),
        ("#[serde(default = \"crate::control::port\")] struct S;", "crate::control::port"),
        (
            "mod inner { use super::super::super::data_plane_thread::DataPlaneThread; }",
            "crate::data_plane_thread::DataPlaneThread",
        ),
        ("fn f() { use ::dashmap::DashMap; }", "dashmap::DashMap"),
    ] {
        let seen = seen(&repository, &SourceFile::new("proxy/src/exchange/sample.rs", source), &CONTROL);
        assert!(seen.contains(&expected.to_owned()), "{source} names {expected}, and the rule sees {seen:?}");
    }
}

#[test]
fn hot_path_rule_passes_what_is_allowed() {
    let repository = repository();
    let source = "
        //! Not an import: [`crate::control`], crate::data_plane_thread.
        use crate::{refusal, run::Run, data_plane_thread_count};
        pub(in crate::runs) fn f() -> &'static str { \"crate::runs::Runs\" }
        mod control { pub fn f() {} }
        fn g() { control::f(); }
        #[cfg(test)]
        mod tests { use crate::runs::Runs; }
    ";
    assert_eq!(
        seen(&repository, &SourceFile::new("proxy/src/exchange/sample.rs", source), &CONTROL),
        [""; 0]
    );
}

#[test]
fn core_is_pure() {
    let repository = repository();
    let core: Vec<_> = repository.rust().filter(|file| file.path.starts_with("platform/core/")).collect();
    assert!(core.len() > 20, "platform/core has moved: name its directory here");
    assert_eq!(reaching(&repository, core.into_iter(), &IMPURE), [], "impure imports of platform/core");
    let manifest = repository.crate_of("platform/core/Cargo.toml").expect("platform/core is a crate");
    let dependencies = manifest.manifest.get("dependencies").and_then(toml::Value::as_table);
    let names: BTreeSet<_> =
        dependencies.into_iter().flat_map(toml::Table::keys).map(String::as_str).collect();
    assert!(!names.is_empty(), "the manifest of platform/core names its dependencies");
    let impure: Vec<_> = IMPURE.iter().filter(|name| names.contains(*name)).collect();
    assert!(impure.is_empty(), "platform/core depends on {impure:?}");
}

#[test]
fn core_rule_sees_every_form_of_import() {
    let repository = repository();
    for (source, expected) in [
        ("use std::{net::SocketAddr, path::PathBuf};", "std::net::SocketAddr"),
        ("use std::time::{Duration, SystemTime as Clock};", "std::time::SystemTime"),
        ("use std::time; fn f() { time::Instant::now(); }", "std::time::Instant::now"),
        ("use std::time::*;", "std::time::*"),
        ("use std::*;", "std::*"),
        ("fn f() { std::fs::read(\"/etc/passwd\"); }", "std::fs::read"),
        ("extern crate tokio as t; fn f() { t::spawn(()); }", "tokio::spawn"),
    ] {
        let seen = seen(&repository, &SourceFile::new("platform/core/src/sample.rs", source), &IMPURE);
        assert!(seen.contains(&expected.to_owned()), "{source} names {expected}, and the rule sees {seen:?}");
    }
    let allowed = "use core::net::SocketAddr; use std::{path::PathBuf, time::{self, Duration}};";
    assert_eq!(seen(&repository, &SourceFile::new("platform/core/src/sample.rs", allowed), &IMPURE), [""; 0]);
}

#[test]
fn one_module_imports_the_docker_client() {
    let repository = repository();
    let naming = repository.rust().filter(|file| file.text.contains("bollard"));
    let importers = reaching(&repository, naming, &["bollard"]);
    let dirs: BTreeSet<_> = importers.iter().map(|import| format!("{}/", parent(&import.path))).collect();
    assert!(!dirs.is_empty(), "nothing imports the Docker client: the rule looks for the wrong name");
    let strange: Vec<_> = dirs.iter().filter(|dir| !dir.starts_with(DOCKER)).collect();
    assert!(strange.is_empty(), "only {DOCKER} may import the Docker client, and so do {strange:?}");
}

#[test]
fn one_place_reads_the_environment() {
    let repository = repository();
    let mut readers = BTreeSet::new();
    for file in repository.rust().filter(|file| file.text.contains("env")) {
        // Tests, too: a variable of the machine must not decide whether they pass.
        let imports = imports::of_file(&repository, file).expect("every file parses");
        if imports.iter().any(|import| ENVIRONMENT.iter().any(|read| import.reaches(read))) {
            readers.insert(file.path.as_str());
        }
    }
    assert_eq!(readers, BTreeSet::from(READERS), "files that read the environment");
}

#[test]
fn one_reader_reads_json() {
    let repository = repository();
    let found = reaching(&repository, repository.product(), &UNBOUNDED_READERS);
    assert!(found.is_empty(), "read it with platform_core::json, which bounds it: {found:#?}");
    let parses = |file: &&SourceFile| file.text.contains("parse::<Value>");
    assert_eq!(repository.product().find(parses).map(|file| &file.path), None, "serde_json reads there, too");

    // The control: each of them is seen, and tests may use them.
    for name in UNBOUNDED_READERS {
        let source = format!("fn f() {{ {name}(x); }} #[cfg(test)] mod tests {{ use {name}; }}");
        assert_eq!(
            seen(&repository, &SourceFile::new("runner/api/src/sample.rs", &source), &[name]).len(),
            1
        );
    }
}

#[test]
fn tests_stay_within_their_tier() {
    let repository = repository();
    let below = |place: &'static str| repository.rust().filter(move |file| file.path.starts_with(place));
    let beyond_processes = [&CONTAINERS[..], &CLIENTS[..]].concat();
    let mut found = reaching(&repository, below("tests/processes/"), &beyond_processes);
    found.extend(reaching(&repository, below("tests/containers/"), &CLIENTS));
    let is_bound_to_docker = |file: &&SourceFile| file.text.contains("Command::new(\"docker\")");
    let starting = below("tests/processes/").find(is_bound_to_docker).map(|file| &file.path);
    assert_eq!(starting, None, "tests/processes starts no container");
    assert!(found.is_empty(), "move these to tests/containers or tests/clients (tests/README.md): {found:?}");

    // The control: each of them is seen.
    for name in beyond_processes {
        let source = SourceFile::new("tests/processes/sample.rs", &format!("use {name};\n"));
        assert_eq!(seen(&repository, &source, &[name]).len(), 1, "{name}");
    }
}
