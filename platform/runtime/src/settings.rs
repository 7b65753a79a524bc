//! All settings there are, of both programs, as one file holds them.
//!
//! Each program uses its own sections, but reads the whole file, so that a mistake anywhere is found by
//! whichever starts first.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    id::AgentId,
    limit::{self, ByteSize, Millis},
    name,
};

use crate::config::{self, Mistakes, Section, Sources, Value};

/// The whole configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model API that calls are forwarded to.
    pub upstream: Upstream,
    /// The data plane.
    pub proxy: Proxy,
    /// Where sandboxes run.
    pub sandbox: Sandbox,
    /// What can run in them.
    pub agents: BTreeMap<AgentId, Agent>,
}

/// `[upstream]`
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Scheme, host and port; a path is not possible.
    pub base_url: String,
    /// File that holds the key and nothing else.
    pub key_file: Option<PathBuf>,
    /// Model for agents whose entry names none.
    pub default_model: Option<String>,
    /// Longest wait for a connection.
    pub connect: Millis,
    /// How long an idle connection is kept for the next call.
    pub pool_idle: Millis,
}

/// `[proxy]`
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Sockets; a directory that does not outlive a boot.
    pub run_dir: PathBuf,
    /// The journal.
    pub state_dir: PathBuf,
    /// Data-plane threads; one per core if absent.
    pub threads: Option<u16>,
    /// How long calls in flight may go on after a stop.
    pub drain: Millis,
    /// How long a client may take to send a request's head.
    pub header_read: Millis,
    /// Users besides our own and root who may speak to the control socket.
    pub control_uids: Vec<u32>,
}

/// `[sandbox]`
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// Docker's API socket.
    pub docker_socket: PathBuf,
    /// Workspaces of runs.
    pub workspace_dir: PathBuf,
    /// Tells this installation's containers from another's on the same Docker.
    pub installation: String,
}

/// `[agents."family:name"]`
#[derive(Debug, Clone)]
pub struct Agent {
    /// For people.
    pub name: String,
    /// For people.
    pub description: String,
    /// Image of the container.
    pub image: String,
    /// Program and arguments; no shell is involved.
    pub argv: Vec<String>,
    /// What the program prints on stdout.
    pub protocol: Protocol,
    /// Model if the run does not say; `upstream.default_model` if absent.
    pub model: Option<String>,
    /// Wall-clock time of a run.
    pub runtime: Millis,
    /// Memory, swap included.
    pub memory: ByteSize,
    /// Processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of a core.
    pub milli_cpu: u32,
    /// What is kept of each of stdout and stderr.
    pub output: ByteSize,
}

/// What an agent's program prints on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One JSON envelope: `payloads[]`, `meta{durationMs, error}`.
    Envelope,
    /// The answer itself.
    Text,
}

impl Value for Protocol {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "envelope" => Ok(Self::Envelope),
            "text" => Ok(Self::Text),
            other => Err(format!("expected `envelope` or `text`, found `{other}`")),
        }
    }

    fn schema() -> serde_json::Value {
        serde_json::json!({ "enum": ["envelope", "text"] })
    }

    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Envelope => "envelope".into(),
            Self::Text => "text".into(),
        }
    }
}

/// The agent that is there without configuration.
pub const DEFAULT_AGENT: &str = "sandbox:agent";

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// All mistakes at once.
    pub fn read(sources: &Sources) -> Result<Self, Mistakes> {
        config::read(sources, Self::section)
    }

    /// JSON Schema of the file.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        config::json_schema("Sluicegate configuration", Self::section)
    }

    fn section(root: &Section<'_>) -> Self {
        Self {
            upstream: root.section(
                "upstream",
                "The model API that calls are forwarded to.",
                Upstream::section,
            ),
            proxy: root.section("proxy", "The data plane, `sluice-proxy`.", Proxy::section),
            sandbox: root.section("sandbox", "Where sandboxes run.", Sandbox::section),
            agents: agents(root),
        }
    }
}

impl Upstream {
    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        let settings = Self {
            base_url: field("base_url", "Scheme, host and port of the upstream, without a path.")
                .variable(name::env::LITELLM_BASE_URL)
                .or("http://127.0.0.1:4000".to_owned()),
            key_file: field("key_file", "File that holds the upstream's key and nothing else; it should be readable by the proxy's user only.")
                .optional(),
            default_model: field("default_model", "Model for agents whose entry names none.").optional(),
            connect: field("connect", "Longest wait for a connection to the upstream.").or(limit::data_plane::CONNECT),
            pool_idle: field("pool_idle", "How long an idle connection is kept. Must be below the upstream's own limit: gunicorn 2s, uvicorn 5s.")
                .or(limit::data_plane::POOL_IDLE),
        };
        if let Err(problem) = authority(&settings.base_url) {
            section.reject("base_url", problem);
        }
        settings
    }

    /// `host:port` of the upstream.
    #[must_use]
    pub fn authority(&self) -> String {
        authority(&self.base_url).unwrap_or_default()
    }
}

/// `host:port` of `http://host[:port]`.
fn authority(base_url: &str) -> Result<String, String> {
    let expected = |what: &str| Err(format!("{what}: expected `http://host:port`, found `{base_url}`"));
    if base_url.starts_with("https://") {
        return expected("TLS to the upstream is not supported yet");
    }
    let Some(authority) = base_url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')) else {
        return expected("not a base URL");
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (authority, Some(80)),
    };
    let host_is_plain = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
    match port {
        Some(port) if host_is_plain => Ok(format!("{host}:{port}")),
        _ => expected("not a base URL"),
    }
}

impl Proxy {
    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            run_dir: field(
                "run_dir",
                "Directory of the sockets. Must be short: a socket's path has at most 107 bytes.",
            )
            .or("/run/sluicegate".into()),
            state_dir: field("state_dir", "Directory of the journal.").or("/var/lib/sluicegate/proxy".into()),
            threads: field("threads", "Data-plane threads; one per core if absent.").optional(),
            drain: field("drain", "How long calls in flight may go on after a stop was asked for.")
                .or(limit::data_plane::DRAIN),
            header_read: field("header_read", "How long a client may take to send a request's head.")
                .or(limit::data_plane::HEADER_READ),
            control_uids: field(
                "control_uids",
                "Users besides the proxy's own and root who may speak to the control socket.",
            )
            .list_or(vec![]),
        }
    }

    /// Directory of the control socket; never mounted anywhere.
    #[must_use]
    pub fn control_dir(&self) -> PathBuf {
        self.run_dir.join("control")
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control_dir().join("control.sock")
    }

    /// Directory of the runs' socket directories.
    #[must_use]
    pub fn listeners_dir(&self) -> PathBuf {
        self.run_dir.join("runs")
    }
}

impl Sandbox {
    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            docker_socket: field("docker_socket", "Docker's API socket.").or("/var/run/docker.sock".into()),
            workspace_dir: field("workspace_dir", "Directory of the runs' workspaces.")
                .or("/var/lib/sluicegate/workspaces".into()),
            installation: field(
                "installation",
                "Name of this installation; containers of another are never touched.",
            )
            .or("default".to_owned()),
        }
    }
}

fn agents(root: &Section<'_>) -> BTreeMap<AgentId, Agent> {
    let read = |id: &str, section: &Section<'_>| {
        let agent = Agent::section(section);
        let id = AgentId::parse(id).map_err(|error| section.reject("", error.to_string())).ok()?;
        Some((id, agent))
    };
    let mut agents: BTreeMap<_, _> = root
        .each("agents", "What can run in a sandbox, by agent id (`family:name`).", read)
        .into_iter()
        .flatten()
        .collect();
    if let Ok(id) = AgentId::parse(DEFAULT_AGENT) {
        agents.entry(id).or_insert_with(|| config::defaults(Agent::section));
    }
    agents
}

impl Agent {
    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            name: field("name", "Name for people.").or("Sandbox Agent".to_owned()),
            description: field("description", "What it does, for people.")
                .or("LLM agent in an isolated container".to_owned()),
            image: field("image", "Image of the container.")
                .or("sluicegate/sandbox-runtime:latest".to_owned()),
            argv: field("argv", "Program and arguments; no shell is involved.")
                .list_or(vec!["node".to_owned(), "/agent/run.mjs".to_owned()]),
            protocol: field("protocol", "What the program prints on stdout: `envelope` or `text`.")
                .or(Protocol::Envelope),
            model: field("model", "Model if the run does not say; `upstream.default_model` if absent.")
                .optional(),
            runtime: field("runtime", "Wall-clock time of a run.").or(limit::sandbox::RUNTIME),
            memory: field("memory", "Memory, swap included.").or(limit::sandbox::MEMORY),
            pids: field("pids", "Processes and threads.").or(limit::sandbox::PIDS),
            milli_cpu: field("milli_cpu", "Processor time, in thousandths of a core.")
                .or(limit::sandbox::MILLI_CPU),
            output: field(
                "output",
                "What is kept of each of stdout and stderr; beginning and end are kept, the middle is cut.",
            )
            .or(limit::sandbox::OUTPUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn parse(text: &str) -> Result<Settings, Mistakes> {
        Settings::read(&Sources { file: Some(("s.toml".into(), text.to_owned())), ..Sources::default() })
    }

    #[test]
    fn the_agent_that_ships_is_there_without_a_file() {
        let settings = Settings::read(&Sources::default()).unwrap();
        let agent = &settings.agents[&AgentId::parse(DEFAULT_AGENT).unwrap()];
        assert_eq!((agent.runtime, agent.memory), (Millis::seconds(120), ByteSize::mib(512)));
        assert_eq!(agent.argv, ["node", "/agent/run.mjs"]);
    }

    #[test]
    fn an_agent_is_an_entry() {
        let settings =
            parse("[agents.'team:reviewer']\nimage = 'reviewer:1'\nargv = ['/bin/review', '--all']\n")
                .unwrap();
        assert_eq!(settings.agents.len(), 2);
        assert_eq!(settings.agents[&AgentId::parse("team:reviewer").unwrap()].argv, ["/bin/review", "--all"]);
        assert!(parse("[agents.reviewer]\n").unwrap_err().to_string().contains("is not an agent id"));
    }

    #[test]
    fn base_urls_are_checked_where_they_are_written() {
        for (url, authority) in [
            ("http://litellm:4000", "litellm:4000"),
            ("http://10.0.0.1/", "10.0.0.1:80"),
            ("http://[::1]:4000", "[::1]:4000"),
        ] {
            let environment = Environment::from([("LITELLM_BASE_URL", url)]);
            assert_eq!(
                Settings::read(&Sources { environment, ..Sources::default() }).unwrap().upstream.authority(),
                authority
            );
        }
        for url in [
            "https://x",
            "litellm:4000",
            "http://",
            "http://a/v1",
            "http://a:b",
            "http://user@host",
            "http://a:99999",
        ] {
            let error = parse(&format!("\n[upstream]\nbase_url = '{url}'\n")).unwrap_err().to_string();
            assert!(error.contains("s.toml:3: upstream.base_url: "), "{url}: {error}");
        }
    }
}
