//! Reads the Docker volumes that an agent's containers mount besides their workspace. Sluicegate never creates them.

use platform_core::{invalid::InvalidValue, name::path};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml::de::DeValue;

use crate::config::{self, Section, Value};

/// A volume and its mount point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Name of the volume at Docker.
    pub volume: String,
    /// Mount point in the container.
    pub container_path: String,
    /// Read-only mount, if true.
    pub read_only: bool,
}

/// Paths at which no volume may be mounted: the sandbox's own mounts, and those that programs of the image start from.
/// An agent that can write there decides what the next run executes, which may belong to another account.
const RESERVED_PATHS: [&str; 21] = [
    path::WORKSPACE,
    path::SOCKET_DIR,
    path::START_DIR,
    "/tmp",
    "/run",
    "/var/run",
    "/proc",
    "/sys",
    "/dev",
    "/agent",
    "/bin",
    "/boot",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/root",
    "/sbin",
    "/usr",
    "/var/lib",
];

/// Reads the volumes of an agent's entry.
pub(super) fn read(section: &Section<'_>) -> Vec<Volume> {
    const NAME: &str = "volumes";
    let volumes: Vec<Volume> = section
        .field(
            NAME,
            "Volumes of Docker that are mounted, which must be there before: `sluice repo add` makes one with a repository. A gateway that runs here mounts those of all its agents. `read_only` is true if absent.",
        )
        .list_or(vec![]);
    for (at, volume) in volumes.iter().enumerate() {
        if let Some(other) = volumes[..at].iter().find(|other| volume.overlaps(other)) {
            let Volume { volume, container_path, .. } = volume;
            let problem = format!(
                "{container_path} cannot be both `{}` and `{volume}`, nor one in the other: give one another path",
                other.volume
            );
            section.reject(NAME, problem);
        }
    }
    volumes
}

/// Returns whether `path` is `directory` or lies below it.
pub(in crate::settings) fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Volume {
    /// Returns whether both are mounted at the same path, or one in the other.
    pub(in crate::settings) fn overlaps(&self, other: &Self) -> bool {
        is_below(&self.container_path, &other.container_path)
            || is_below(&other.container_path, &self.container_path)
    }

    fn check(self) -> Result<Self, InvalidValue> {
        let Self { volume, container_path: path, .. } = &self;
        let is_name = volume.len() > 1
            && volume.starts_with(|first: char| first.is_ascii_alphanumeric())
            && volume.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !is_name {
            return Err(format!(
                "`{}` is not the name of a volume: at least two letters, digits, `_`, `.` or `-`, not beginning with a sign",
                volume.escape_debug()
            ).into());
        }
        let is_plain = |word: &str| !["", ".", ".."].contains(&word) && !word.contains(char::is_control);
        if !path.strip_prefix('/').is_some_and(|below| below.split('/').all(is_plain)) {
            return Err(format!(
                "container_path `{}` is not an absolute path without `.`, `..` and a `/` at its end",
                path.escape_debug()
            )
            .into());
        }
        match RESERVED_PATHS.iter().find(|reserved| is_below(path, reserved)) {
            Some(reserved) => Err(format!(
                "container_path `{path}`: {reserved} is not for volumes, choose a path elsewhere"
            )
            .into()),
            None => Ok(self),
        }
    }
}

impl Value for Volume {
    fn from_text(_text: &str) -> Result<Self, InvalidValue> {
        Err("expected a table such as `{ volume = \"cache\", container_path = \"/cache\" }`".into())
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        let DeValue::Table(table) = value else { return Self::from_text("") };
        let mut volume = None;
        let mut container_path = None;
        let mut read_only = true;
        for (key, value) in table {
            match (&**key.get_ref(), value.get_ref()) {
                ("volume", DeValue::String(name)) => volume = Some(name.to_string()),
                ("container_path", DeValue::String(path)) => container_path = Some(path.to_string()),
                ("read_only", DeValue::Boolean(value)) => read_only = *value,
                ("volume" | "container_path", other) => {
                    return Err(format!(
                        "{}: expected a string, found {}",
                        key.get_ref(),
                        config::kind(other)
                    )
                    .into());
                }
                ("read_only", other) => {
                    return Err(
                        format!("read_only: expected a boolean, found {}", config::kind(other)).into()
                    );
                }
                (other, _) => {
                    return Err(format!(
                        "unknown key `{other}`; known here: volume, container_path, read_only"
                    )
                    .into());
                }
            }
        }
        let absent = |name: &str| format!("{name} is missing");
        let volume = volume.ok_or_else(|| absent("volume"))?;
        let container_path = container_path.ok_or_else(|| absent("container_path"))?;
        Self { volume, container_path, read_only }.check()
    }

    fn schema() -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {
                "volume": { "type": "string" },
                "container_path": { "type": "string", "pattern": "^/" },
                "read_only": { "type": "boolean", "default": true },
            },
            "required": ["volume", "container_path"],
            "additionalProperties": false,
        })
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}
