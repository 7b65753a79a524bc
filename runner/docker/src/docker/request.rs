//! Builds the request for a sandbox: everything it is denied and the little it is granted.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, MountVolumeOptions,
};
use platform_core::{
    limit::{self, ByteSize},
    name::{
        self, SANDBOX_UID,
        env::{LLM_PROXY_PORT, SANDBOX_START_FILE},
        path,
    },
};
use platform_runtime::settings::Volume;

use crate::{First, Limits, Program, SandboxSpec};

/// Builds the whole request.
pub(super) fn body(spec: &SandboxSpec) -> ContainerCreateBody {
    let pairs = |(key, value): (&&'static str, &String)| ((*key).to_owned(), value.clone());
    let first = match &spec.first {
        First::Run(Program { argv, environment, working_directory }) => ContainerCreateBody {
            cmd: Some(argv.clone()),
            env: Some(environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
            working_dir: Some(working_directory.clone()),
            ..ContainerCreateBody::default()
        },
        First::Wait(_) => ContainerCreateBody {
            env: Some(vec![
                format!("{SANDBOX_START_FILE}={}/{}", path::START_DIR, path::START_FILE),
                format!("{LLM_PROXY_PORT}={}", spec.settings.bridge_port),
            ]),
            working_dir: Some(path::WORKSPACE.to_owned()),
            ..ContainerCreateBody::default()
        },
    };
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        labels: Some(spec.labels.iter().map(pairs).collect()),
        // Both: `1001` alone leaves group 0.
        user: Some(format!("{SANDBOX_UID}:{SANDBOX_UID}")),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        host_config: Some(host_config(spec)),
        ..first
    }
}

fn host_config(spec: &SandboxSpec) -> HostConfig {
    let own = [
        bind(&spec.workspace, path::WORKSPACE, Access::ReadWrite),
        // connect(2) asks for write permission on the socket, not on the mount.
        bind(&spec.socket_dir, path::SOCKET_DIR, Access::ReadOnly),
    ];
    let start = match &spec.first {
        First::Run(_) => None,
        First::Wait(dir) => Some(bind(dir, path::START_DIR, Access::ReadOnly)),
    };
    HostConfig {
        mounts: Some(own.into_iter().chain(start).chain(spec.settings.volumes.iter().map(volume)).collect()),
        tmpfs: Some(
            [
                ("/tmp".to_owned(), tmpfs(Programs::Run, spec.settings.tmp_size)),
                ("/var/tmp".to_owned(), tmpfs(Programs::Run, spec.settings.tmp_size)),
                ("/run".to_owned(), tmpfs(Programs::Refused, limit::sandbox::RUN)),
            ]
            .into(),
        ),
        shm_size: Some(bytes(spec.settings.shm_size)),
        sysctls: loopback_ipv6(),
        ..hardened(spec.settings.limits)
    }
}

/// Gives the sandbox `::1`, which a program that listens on `localhost` may take; `None` on a host without IPv6.
fn loopback_ipv6() -> Option<HashMap<String, String>> {
    let sysctls = ["all", "lo"].map(|name| (format!("net.ipv6.conf.{name}.disable_ipv6"), "0".to_owned()));
    Path::new("/proc/sys/net/ipv6").exists().then(|| sysctls.into())
}

/// Treatment of programs in a file system.
#[derive(Clone, Copy)]
enum Programs {
    Run,
    Refused,
}

/// Returns the options of a file system in memory, which belongs to the sandbox's user.
fn tmpfs(programs: Programs, size: ByteSize) -> String {
    let exec = match programs {
        Programs::Run => "exec",
        Programs::Refused => "noexec",
    };
    format!("rw,{exec},nosuid,nodev,uid={SANDBOX_UID},gid={SANDBOX_UID},mode=0755,size={}", size.0)
}

fn bytes(size: ByteSize) -> i64 {
    i64::try_from(size.0).unwrap_or(i64::MAX)
}

/// Returns everything a container is denied, and its limits.
pub(super) fn hardened(limits: Limits) -> HostConfig {
    HostConfig {
        network_mode: Some("none".to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
        pids_limit: Some(i64::from(limits.pids)),
        memory: Some(bytes(limits.memory)),
        memory_swap: Some(bytes(limits.memory)),
        nano_cpus: Some(i64::from(limits.milli_cpu) * 1_000_000),
        // An init reaps what the agent leaves behind.
        init: Some(true),
        tmpfs: Some(
            [
                ("/tmp".to_owned(), tmpfs(Programs::Refused, limit::sandbox::SMALL_TMP)),
                ("/run".to_owned(), tmpfs(Programs::Refused, limit::sandbox::RUN)),
            ]
            .into(),
        ),
        log_config: Some(log_config(limits.output)),
        ..HostConfig::default()
    }
}

/// Configures Docker's log, for a process that finds the container and was not attached from its start. The log holds
/// all that is captured of an output, and of a longer one at least the end. Docker writes its own buffers before it
/// reports a container's end. For a container that prints lines of two bytes without end this takes some seconds.
/// Without it pieces of the log would be lost.
fn log_config(output: ByteSize) -> HostConfigLogConfig {
    let both = (output.0 * 2).max(1 << 16).to_string();
    let options = [("max-size", both.as_str()), ("max-file", "2"), ("compress", "false")];
    let config = options.map(|(key, value)| (key.to_owned(), value.to_owned()));
    HostConfigLogConfig { typ: Some("local".to_owned()), config: Some(config.into()) }
}

#[derive(Clone, Copy)]
pub(super) enum Access {
    ReadWrite,
    ReadOnly,
}

pub(super) fn bind(source: &Path, target: &str, access: Access) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_string_lossy().into_owned()),
        target: Some(target.to_owned()),
        read_only: Some(matches!(access, Access::ReadOnly)),
        ..Mount::default()
    }
}

pub(super) fn volume(Volume { volume, container_path, read_only }: &Volume) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume.clone()),
        target: Some(container_path.clone()),
        read_only: Some(*read_only),
        // By default Docker fills an empty volume with the image's content at that path, even a read-only one.
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
        ..Mount::default()
    }
}

/// Returns the labels of a container created in `epoch`. `values` are its installation, run, agent and workspace.
pub fn labels(values: [&str; 4], epoch: u64) -> BTreeMap<&'static str, String> {
    let keys = [name::label::INSTALLATION, name::label::RUN_ID, name::label::AGENT, name::label::WORKSPACE];
    let pairs = keys.into_iter().zip(values.map(str::to_owned));
    pairs.chain([(name::label::EPOCH, epoch.to_string())]).collect()
}

/// Returns the labels of a warm container. `values` are its installation, agent, template and workspace.
pub fn warm_labels(values: [&str; 4]) -> BTreeMap<&'static str, String> {
    let keys = [name::label::INSTALLATION, name::label::AGENT, name::label::TEMPLATE, name::label::WORKSPACE];
    keys.into_iter().zip(values.map(str::to_owned)).collect()
}
