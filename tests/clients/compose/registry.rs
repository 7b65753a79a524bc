//! Tests that the gateway of `openclaw.yaml` mounts the volumes that its agent's entry declares, and no others of them.

use std::{collections::BTreeSet, fs, path::Path};

use platform_runtime::{
    config::Sources,
    settings::{Settings, Volume},
};
use serde_json::Value;

use super::stack::{read, texts};

/// Volume of the gateway's own state, which no entry declares.
const STATE: &str = "gateway-state";

/// A volume's name at Docker, its path in the container, and whether it is read-only.
type Mounted = (String, String, bool);

/// Returns the named volumes that a service mounts, besides its state.
fn mounted(file: &Value, service: &str) -> BTreeSet<Mounted> {
    let mount = |text: &str| {
        let mut parts = text.split(':');
        let source = parts.next()?;
        let target = parts.next()?;
        let declared = file["volumes"].get(source).filter(|_| source != STATE)?;
        assert_eq!(declared["external"], true, "Docker would make an empty {source}");
        let name = declared["name"].as_str().expect("its name at Docker");
        Some((name.to_owned(), target.to_owned(), parts.next() == Some("ro")))
    };
    texts(&file["services"][service]["volumes"]).filter_map(mount).collect()
}

/// Returns the volumes that the README's entries declare for agents of gateways.
fn declared(registry: &str) -> BTreeSet<Mounted> {
    let gateway = "[proxy]\nlisten = '127.0.0.1:1'\n[gateways.there]\nurl = 'ws://h:1'\ntoken_file = '/t'\n";
    let file = Some(("README.md".into(), format!("{gateway}{registry}")));
    let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
    let there = |id: &str| settings.gateway_volumes(&id.parse().unwrap());
    let triple = |Volume { volume, container_path, read_only }| (volume, container_path, read_only);
    there("there").into_iter().map(triple).collect()
}

#[test]
fn compose_mounts_what_the_registry_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../platform/compose/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let block = readme.split("```toml\n").nth(1).expect("an entry").split("```").next().unwrap();
    let registry = block.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let file = read("openclaw.yaml");
    let mounted = mounted(&file, "openclaw-gateway");
    assert!(mounted.iter().any(|(_, path, read_only)| path == "/repo" && *read_only), "{mounted:?}");
    assert_eq!(mounted, declared(&registry));
    for (from, to) in
        [("\"/repo\"", "\"/rep\""), ("workspace\"", "workspce\""), (" }]", ", read_only = false }]")]
    {
        assert_ne!(mounted, declared(&registry.replace(from, to)), "control: {from} is {to}");
    }
}
