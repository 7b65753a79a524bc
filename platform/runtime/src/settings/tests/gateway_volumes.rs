//! Tests the volumes that agents declare for a managed gateway.

use super::{Volume, parse};

/// Returns the file of a gateway with two agents that have these `volumes` in their entries.
fn file(first: &str, second: &str) -> String {
    let agent = |name: &str, volumes: &str| {
        format!("[agents.'a:{name}']\nmode = 'gateway'\ngateways = ['g']\nvolumes = [{volumes}]\n")
    };
    format!("[gateways.g]\n{}{}", agent("one", first), agent("two", second))
}

const WEB: &str = "{ volume = 'sluice-default-repo-web', container_path = '/repo/web' }";
const API: &str = "{ volume = 'sluice-default-repo-api', container_path = '/repo/api' }";

#[test]
fn a_gateway_mounts_the_volumes_of_its_agents() {
    let settings = parse(&file(WEB, &format!("{API}, {WEB}"))).unwrap();
    let volume = |name: &str| Volume {
        volume: format!("sluice-default-repo-{name}"),
        container_path: format!("/repo/{name}"),
        read_only: true,
    };
    assert_eq!(settings.gateway_volumes(&"g".parse().unwrap()), ["web", "api"].map(volume));
    assert_eq!(settings.gateway_volumes(&"other".parse().unwrap()), []);
}

#[test]
fn unmountable_volumes_of_gateways_are_refused() {
    let other = "{ volume = 'other', container_path = '/repo/web/below' }";
    let writable = "{ volume = 'sluice-default-repo-web', container_path = '/repo/web', read_only = false }";
    for (first, second, said) in [
        (WEB, other, "agents.a:two.volumes: `other` at /repo/web/below: gateway g has"),
        (WEB, writable, "is one container for both"),
        ("{ volume = 'vv', container_path = '/config' }", "", "/config is gateway g's own"),
        ("", "{ volume = 'vv', container_path = '/opt' }", "/opt/openclaw is gateway g's own"),
    ] {
        let error = parse(&file(first, second)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let elsewhere = file(WEB, other).replace(
        "[gateways.g]",
        "[proxy]\nlisten = '127.0.0.1:1'\n[gateways.g]\nurl = 'ws://h:1'\ntoken_file = '/t'",
    );
    parse(&elsewhere).expect("control: each agent of a gateway elsewhere may have its own container");
}
