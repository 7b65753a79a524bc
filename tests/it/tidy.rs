//! House rules as tests: what a review would say twice, said by the build instead.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Lines a file may have; tests in a file of their own may have more.
const WALL: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All files below `dir` with one of `endings`, what git ignores left out.
fn files(dir: &Path, endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() {
            if !["target", ".git", "node_modules"].contains(&name.as_str()) {
                found.extend(files(&entry, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let relative = entry.strip_prefix(root()).unwrap().to_owned();
            found.push((relative, fs::read_to_string(&entry).unwrap()));
        }
    }
    found
}

fn manifests() -> BTreeMap<String, toml::Table> {
    let manifests =
        files(&root(), &["Cargo.toml"]).into_iter().filter(|(path, _)| path.components().count() > 1);
    manifests
        .map(|(path, text)| (path.parent().unwrap().display().to_string(), text.parse().unwrap()))
        .collect()
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<_> = files(&root(), &[".rs"])
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(silent, Vec::<PathBuf>::new(), "files that do not begin with a module comment");
}

#[test]
fn no_file_is_longer_than_the_wall() {
    let long: Vec<_> = files(&root(), &[".rs", ".mjs", ".sh"])
        .into_iter()
        .map(|(path, text)| (text.lines().count(), path))
        .filter(|(lines, _)| *lines > WALL)
        .collect();
    assert_eq!(long, vec![], "files of more than {WALL} lines");
}

#[test]
fn every_crate_inherits_the_lints() {
    for (path, manifest) in manifests() {
        let inherits =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(inherits, Some(true), "{path}/Cargo.toml does not inherit the workspace's lints");
    }
}

#[test]
fn crates_depend_on_nothing_but_what_lies_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("platform/core", &[][..]),
        ("platform/runtime", &["platform-core"]),
        ("gateway-bridge", &["platform-core", "platform-runtime"]),
        ("proxy", &["platform-core", "platform-runtime"]),
        ("runner", &["platform-core", "platform-runtime", "gateway-bridge"]),
        ("services/sandbox-init", &["platform-core"]),
        ("bench", &[]),
        ("fuzz", &["platform-core", "proxy", "gateway-bridge"]),
        // Of the runner its failpoints and what its store says, of the bridge its handle; everything else is seen from
        // outside.
        ("tests", &["platform-core", "platform-runtime", "bench", "gateway-bridge", "runner"]),
    ]);
    let own = [
        "platform-core",
        "platform-runtime",
        "gateway-bridge",
        "proxy",
        "runner",
        "sandbox-init",
        "bench",
        "tests",
    ];
    for (path, manifest) in manifests() {
        let allowed =
            allowed.get(path.as_str()).unwrap_or_else(|| panic!("{path} is a crate this rule does not know"));
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, _) in manifest.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                let is_own = own.contains(&name.as_str());
                assert!(!is_own || allowed.contains(&name.as_str()), "{path} must not depend on {name}");
            }
        }
    }
}

#[test]
fn what_is_fuzzed_is_what_is_shipped() {
    let versions = |lock: &str| -> Vec<(String, String)> {
        let lock: toml::Table = fs::read_to_string(root().join(lock)).unwrap().parse().unwrap();
        let packages = lock["package"].as_array().unwrap().iter();
        let text = |package: &toml::Value, key| package[key].as_str().unwrap().to_owned();
        packages.map(|package| (text(package, "name"), text(package, "version"))).collect()
    };
    let shipped = versions("Cargo.lock");
    for fuzzed in versions("fuzz/Cargo.lock") {
        let other = shipped.iter().find(|(name, _)| *name == fuzzed.0);
        assert!(other.is_none() || shipped.contains(&fuzzed), "{fuzzed:?} in fuzz/Cargo.lock, but {other:?}");
    }
}

#[test]
fn core_is_pure() {
    let manifest = &manifests()["platform/core"];
    for name in ["tokio", "hyper", "tracing", "rustix", "getrandom"] {
        assert!(manifest["dependencies"].get(name).is_none(), "platform/core depends on {name}");
    }
    for (path, text) in files(&root().join("platform/core"), &[".rs"]) {
        for word in ["std::fs", "std::env", "std::net", "SystemTime", "Instant::now"] {
            assert!(!text.contains(word), "{} uses {word}", path.display());
        }
    }
}

#[test]
fn the_hot_path_never_imports_control() {
    for dir in ["proxy/src/exchange", "proxy/src/usage"] {
        for (path, text) in files(&root().join(dir), &[".rs"]) {
            for word in ["crate::control", "crate::runs", "crate::worker", "dashmap"] {
                assert!(!text.contains(word), "{} imports {word}", path.display());
            }
        }
    }
}

#[test]
fn one_module_speaks_to_docker_and_one_place_reads_the_environment() {
    for (path, text) in files(&root(), &[".rs"]) {
        let path = path.display().to_string();
        assert!(
            !text.contains(concat!("use ", "bollard")) || path.starts_with("runner/src/sandbox/docker/"),
            "{path} imports the Docker client"
        );
        let reads = text.contains(concat!("env::", "var"));
        // In a sandbox there is nothing but the environment, and one place reads it, too.
        let may = ["platform/runtime/src/config/mod.rs", "services/sandbox-init/src/settings.rs"];
        assert!(!reads || may.contains(&path.as_str()), "{path} reads the environment");
    }
}

#[test]
fn every_test_that_the_documents_name_exists() {
    let tests: String = files(&root(), &[".rs", ".mjs"]).into_iter().map(|(_, text)| text).collect();
    for document in ["ARCHITECTURE.md", "SECURITY.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let named: Vec<_> =
            text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("test:")).collect();
        assert!(named.len() > 10, "{document} names tests as `test:name`");
        for name in named {
            assert!(
                tests.contains(&format!("fn {name}(")),
                "{document} names test {name}, which does not exist"
            );
        }
    }
}

#[test]
fn the_example_configuration_names_every_setting() {
    let schema = fs::read_to_string(root().join("platform/config/sluice.schema.json")).unwrap();
    assert_eq!(
        schema.trim_end(),
        format!("{:#}", platform_runtime::settings::Settings::json_schema()),
        "run `sluice config schema`"
    );
    let example = fs::read_to_string(root().join("platform/config/sluice.example.toml")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    for (section, settings) in schema["properties"].as_object().unwrap() {
        // Sections of which there are several, by names that are free.
        let each = &settings["additionalProperties"];
        let settings = if each.is_object() { each } else { settings };
        for key in settings["properties"].as_object().unwrap().keys() {
            assert!(example.contains(&format!("{key} = ")), "the example does not show {section}.{key}");
        }
    }
}
