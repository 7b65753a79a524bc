//! Compares the isolation of a container with the one that was requested, by Docker's current description. A process
//! with access to Docker can change a container that exists. The command inside and its restart policy are not
//! checked here. Pure.

use std::collections::BTreeSet;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig};
use serde_json::Value;

/// Settings that have to be as requested.
const MUST_MATCH: [&str; 10] = [
    "NetworkMode",
    "ReadonlyRootfs",
    "CapDrop",
    "SecurityOpt",
    "Tmpfs",
    "Init",
    "PidsLimit",
    "Memory",
    "MemorySwap",
    "NanoCpus",
];

/// Settings that are never requested.
const MUST_BE_UNSET: [&str; 19] = [
    "Privileged",
    "CapAdd",
    "GroupAdd",
    "Devices",
    "DeviceRequests",
    "DeviceCgroupRules",
    "Binds",
    "VolumesFrom",
    "PidMode",
    "IpcMode",
    "UTSMode",
    "UsernsMode",
    "Cgroup",
    "CgroupParent",
    "PortBindings",
    "PublishAllPorts",
    "ExtraHosts",
    "Links",
    "Sysctls",
];

/// Settings by which Docker itself hides paths.
const MUST_BE_SET: [&str; 2] = ["MaskedPaths", "ReadonlyPaths"];

/// Returns the names of the networks it is attached to; there should be none.
pub(super) fn networks(found: &ContainerInspectResponse) -> Vec<String> {
    let networks = found.network_settings.as_ref().and_then(|settings| settings.networks.as_ref());
    let mut names: Vec<_> =
        networks.into_iter().flatten().map(|(name, _)| name.clone()).filter(|name| name != "none").collect();
    names.sort();
    names
}

/// Returns Docker's names of the settings in which `found` differs from `wanted`.
pub(super) fn differences(wanted: &ContainerCreateBody, found: &ContainerInspectResponse) -> Vec<String> {
    let requested = fields(wanted.host_config.as_ref());
    let actual = fields(found.host_config.as_ref());
    let differs =
        MUST_MATCH.into_iter().filter(|name| non_default(&requested[*name]) != non_default(&actual[*name]));
    let added = MUST_BE_UNSET.into_iter().filter(|name| non_default(&actual[*name]).is_some());
    let unmasked = MUST_BE_SET.into_iter().filter(|name| non_default(&actual[*name]).is_none());
    let config = found.config.as_ref();
    let top_level = [
        ("Image", found.image == wanted.image),
        ("User", config.and_then(|config| config.user.as_ref()) == wanted.user.as_ref()),
        ("Cmd", config.and_then(|config| config.cmd.as_ref()) == wanted.cmd.as_ref()),
        ("Mounts", actual_mounts(found) == wanted_mounts(wanted)),
    ];
    let top_level = top_level.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name);
    differs.chain(added).chain(unmasked).chain(top_level).map(str::to_owned).collect()
}

fn fields(host: Option<&HostConfig>) -> Value {
    host.and_then(|host| serde_json::to_value(host).ok()).unwrap_or_default()
}

/// Returns a value, or `None` if it means the default. A container always has its own IPC namespace, whatever Docker
/// calls that.
fn non_default(value: &Value) -> Option<&Value> {
    let is_default = match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => matches!(text.as_str(), "" | "private" | "shareable"),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    };
    (!is_default).then_some(value)
}

/// A mount: its source, its target, and whether it may be written to.
type MountPoint = (String, String, bool);

fn actual_mounts(found: &ContainerInspectResponse) -> BTreeSet<MountPoint> {
    let mounts = found.mounts.iter().flatten().map(|mount| {
        let source = mount.name.clone().filter(|name| !name.is_empty()).or_else(|| mount.source.clone());
        let target = mount.destination.clone().unwrap_or_default();
        (target, source.unwrap_or_default(), mount.rw.unwrap_or(true))
    });
    mounts.collect()
}

fn wanted_mounts(wanted: &ContainerCreateBody) -> BTreeSet<MountPoint> {
    let mounts = wanted.host_config.iter().filter_map(|host| host.mounts.as_ref()).flatten().map(|mount| {
        let target = mount.target.clone().unwrap_or_default();
        (target, mount.source.clone().unwrap_or_default(), mount.read_only != Some(true))
    });
    mounts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> ContainerCreateBody {
        serde_json::from_value(json!({
            "Image": "sha256:1", "User": "1001:1001", "Cmd": ["node"],
            "HostConfig": {
                "NetworkMode": "none", "ReadonlyRootfs": true, "CapDrop": ["ALL"], "Memory": 5, "PidsLimit": 7,
                "SecurityOpt": ["no-new-privileges:true"],
                "Mounts": [{ "Type": "bind", "Source": "/host", "Target": "/config", "ReadOnly": true }],
            },
        }))
        .unwrap()
    }

    /// Returns such a container as Docker describes it, with `value` at `pointer`.
    fn found(pointer: &str, value: Value) -> ContainerInspectResponse {
        let mut found = json!({
            "Image": "sha256:1", "Config": { "User": "1001:1001", "Cmd": ["node"] },
            "HostConfig": {
                "NetworkMode": "none", "ReadonlyRootfs": true, "CapDrop": ["ALL"], "Memory": 5, "PidsLimit": 7,
                "SecurityOpt": ["no-new-privileges:true"], "Privileged": false, "IpcMode": "private", "CapAdd": null,
                "Binds": null, "PidMode": "", "MaskedPaths": ["/proc/kcore"], "ReadonlyPaths": ["/proc/sys"],
            },
            "Mounts": [{ "Type": "bind", "Source": "/host", "Destination": "/config", "RW": false }],
            "NetworkSettings": { "Networks": { "none": {} } },
        });
        if !pointer.is_empty() {
            let (above, field) = pointer.rsplit_once('/').unwrap();
            found.pointer_mut(above).unwrap()[field] = value;
        }
        serde_json::from_value(found).unwrap()
    }

    #[test]
    fn each_changed_isolation_setting_is_named() {
        for (pointer, value, name) in [
            ("/HostConfig/NetworkMode", json!("bridge"), "NetworkMode"),
            ("/HostConfig/ReadonlyRootfs", json!(false), "ReadonlyRootfs"),
            ("/HostConfig/CapDrop", json!([]), "CapDrop"),
            ("/HostConfig/CapAdd", json!(["SYS_ADMIN"]), "CapAdd"),
            ("/HostConfig/SecurityOpt", json!(["seccomp=unconfined"]), "SecurityOpt"),
            ("/HostConfig/Privileged", json!(true), "Privileged"),
            ("/HostConfig/PidMode", json!("host"), "PidMode"),
            ("/HostConfig/IpcMode", json!("host"), "IpcMode"),
            ("/HostConfig/Memory", json!(0), "Memory"),
            ("/HostConfig/PidsLimit", json!(-1), "PidsLimit"),
            ("/HostConfig/MaskedPaths", json!([]), "MaskedPaths"),
            ("/HostConfig/Devices", json!([{ "PathOnHost": "/dev/sda" }]), "Devices"),
            ("/Image", json!("sha256:2"), "Image"),
            ("/Config/User", json!("0:0"), "User"),
            ("/Config/Cmd", json!(["sh"]), "Cmd"),
            ("/Mounts/0/RW", json!(true), "Mounts"),
            ("/Mounts/0/Source", json!("/"), "Mounts"),
            ("/Mounts", json!([]), "Mounts"),
        ] {
            assert_eq!(differences(&wanted(), &found(pointer, value)), [name], "{pointer}");
        }
        // The control: a container as it was requested.
        let found = found("", Value::Null);
        assert_eq!((differences(&wanted(), &found), networks(&found)), (vec![], vec![]));
    }

    #[test]
    fn a_network_connected_later_is_named() {
        let networks_of = |value: Value| networks(&found("/NetworkSettings/Networks", value));
        assert_eq!(networks_of(json!({ "bridge": {} })), ["bridge"]);
        assert_eq!(networks_of(json!({ "none": {}, "b": {}, "a": {} })), ["a", "b"]);
    }
}
