//! selections tests that a build of some programs selects the features that a build of everything selects. Else cargo
//! compiles crates twice, and with each all that is above it.

use std::{collections::BTreeSet, process::Command};

use tidy::sources::Repository;

/// Packages that are built together: for the demonstration, the benchmark, a release, and the image of each program.
const SELECTIONS: [&[&str]; 8] = [
    &["proxy", "runner-cli", "bench"],
    &["proxy", "bench"],
    &["proxy", "runner-cli"],
    &["proxy"],
    &["runner-cli"],
    &["cogni-tool"],
    &["git-sync"],
    &["sandbox-init"],
];

fn repository() -> Repository {
    Repository::open().expect("the repository is read")
}

/// Returns the crates that cargo selects, each with its version and features.
fn selection(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} [{f}]"])
        .args(arguments)
        .current_dir(repository().root())
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Returns the crates that a build of everything selects.
fn everything() -> BTreeSet<String> {
    selection(&["--workspace", "--edges", "normal,build,dev"])
}

/// Returns the crates that a build of `packages` selects.
fn of(packages: &[&str]) -> BTreeSet<String> {
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    selection(&packages.chain(["--edges", "normal,build"]).collect::<Vec<_>>())
}

#[test]
fn programs_select_what_the_workspace_selects() {
    let everything = everything();
    for packages in SELECTIONS {
        let selected = of(packages);
        let others: Vec<_> = selected.difference(&everything).collect();
        assert!(
            others.is_empty(),
            "a build of {packages:?} alone selects other features: {others:#?}; \
             add the missing ones to Cargo.toml, and remove them from the manifests that add them"
        );
    }
}

#[test]
fn selection_rule_sees_another_feature() {
    let selected = selection(&["--package", "proxy", "--features", "internals", "--edges", "normal,build"]);
    let everything = everything();
    let mut others = selected.difference(&everything);
    assert!(others.any(|other| other.starts_with("proxy ") && other.ends_with("[internals]")));
}

/// Without a choice, cargo leaves debug information out of what only build scripts and macros use. Whether programs use
/// it too depends on which are built.
#[test]
fn debug_information_of_crates_is_chosen() {
    let manifest = repository().text("Cargo.toml").expect("the manifest is read");
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    let debug = &manifest["profile"]["dev"]["package"]["*"]["debug"];
    assert_eq!(debug.as_bool(), Some(false), "debug information of crates from elsewhere");
}

/// Features of serde_json with which a `Value` takes an object with a reserved member for something else, and parses the
/// text beside it without a bound.
const RESERVING: [&str; 2] = ["raw_value", "arbitrary_precision"];

/// Returns the lines of `crates` that select serde_json with such a feature.
fn reserving(crates: &BTreeSet<String>) -> Vec<&String> {
    let reserves = |name: &&String| {
        let features = name.split_once('[').map(|(_name, features)| features.trim_end_matches(']'));
        name.starts_with("serde_json ")
            && features.unwrap_or_default().split(',').any(|f| RESERVING.contains(&f))
    };
    crates.iter().filter(reserves).collect()
}

#[test]
fn no_value_reads_a_string_as_json() {
    let crates = everything();
    assert!(crates.iter().any(|name| name.starts_with("serde_json ")), "serde_json is not found");
    assert_eq!(reserving(&crates), Vec::<&String>::new(), "read JSON with platform_core::json instead");
    // Its other crates are not on every machine, and none of them selects features of serde_json.
    let fuzz = repository().text("fuzz/Cargo.toml").expect("the manifest is read");
    assert!(!RESERVING.iter().any(|feature| fuzz.contains(feature)), "fuzz/Cargo.toml selects one");
}

#[test]
fn reserving_features_are_seen() {
    let selected = BTreeSet::from(["serde_json v1.0.1 [default,raw_value,std]".to_owned()]);
    assert_eq!(reserving(&selected).len(), 1);
    assert!(reserving(&BTreeSet::from(["serde_json v1.0.1 [default,std]".to_owned()])).is_empty());
}
