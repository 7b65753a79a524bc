//! Reads the settings of third-party servers of the Model Context Protocol. Their tools are host tools.
//!
//! The names of their tools are known from here: no server is started to read a configuration.

use std::collections::{BTreeMap, BTreeSet};

use platform_core::{
    connection::ConnectionProvider,
    id::{ToolName, ToolServerName},
    limit::{ByteSize, Millis},
};

use super::{Image, ServiceUrl, agents::literal_error};
use crate::config::Section;

/// Separator between the name of a server and that of its tool.
const SEPARATOR: &str = "__";
/// Prefixes of the names of built-in tools.
const BUILT_IN: [&str; 4] = ["core", "github", "repo", "runs"];
/// Most bytes of the name of a tool, with its server's: models take no longer ones.
const MAX_NAME: usize = 64;
/// Most tools of a server.
const MAX_TOOLS: usize = 128;
/// Longest time of a call.
const TIMEOUT: Millis = Millis::seconds(30);
/// Largest time of a call that may be set.
const MAX_TIMEOUT: Millis = Millis::seconds(600);
/// Largest result.
const MAX_RESULT: ByteSize = ByteSize::kib(256);
/// Largest result that may be set.
const GREATEST_RESULT: ByteSize = ByteSize::mib(4);
/// Time without a call after which a container is stopped.
const IDLE_TIMEOUT: Millis = Millis::seconds(300);
/// Containers of a server at the same time.
const MAX_INSTANCES: u32 = 8;
/// Docker's word for no network.
const NO_NETWORK: &str = "none";

/// `[tools.servers.NAME]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    /// Way to the server.
    pub transport: ServerTransport,
    /// Tools that may be used, by their names at the server; each with its name here.
    pub tools: BTreeMap<String, ToolName>,
    /// Those of the tools that change nothing.
    pub reads: BTreeSet<String>,
    /// Longest time of a call.
    pub timeout: Millis,
    /// Largest result.
    pub max_result: ByteSize,
    /// Provider of the accounts' credentials that are sent to the server.
    pub connection: Option<ConnectionProvider>,
    /// Set if all accounts share one instance of the server.
    pub is_shared: bool,
    /// Most instances of the server at the same time.
    pub max_instances: u32,
    /// Time without a call after which an instance is ended.
    pub idle_timeout: Millis,
}

/// Way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// Standard input and output of a program in a container.
    Stdio(StdioServer),
    /// Streamable HTTP.
    Http(ServiceUrl),
}

/// Server that runs in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioServer {
    /// Image of the container.
    pub image: Image,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables besides the image's.
    pub environment: BTreeMap<String, String>,
    /// Docker's network of the container; `none` for none.
    pub network: String,
    /// Memory, swap included.
    pub memory: ByteSize,
    /// Processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of a core.
    pub milli_cpu: u32,
}

pub(super) fn read(section: &Section<'_>) -> BTreeMap<ToolServerName, ToolServer> {
    let doc = "Third-party servers of the Model Context Protocol, by name. A tool of one is `NAME__TOOL` for agents.";
    let servers: BTreeMap<_, _> = section.each("servers", doc, read_server).into_iter().flatten().collect();
    let mut names = BTreeMap::new();
    for (server, tool) in servers.iter().flat_map(|(server, it)| it.tools.values().map(move |t| (server, t)))
    {
        if let Some(other) = names.insert(tool.as_str().to_ascii_lowercase(), tool) {
            let problem = format!("{tool} of {server} has the name of {other}, but for upper and lower case");
            section.reject("servers", problem);
        }
    }
    servers
}

fn read_server(name: &str, section: &Section<'_>) -> Option<(ToolServerName, ToolServer)> {
    let transport = read_transport(name, section);
    let tools = read_tools(name, section);
    let doc = "Those of `tools` that change nothing. Calls of all others run at most once.";
    let reads: Vec<String> = section.field("reads", doc).list_or(vec![]);
    for unlisted in reads.iter().filter(|tool| !tools.contains_key(*tool)) {
        section.reject("reads", format!("`{unlisted}` is not in `tools`"));
    }
    let timeout = section.field("timeout", "Longest time of a call.").at_most(&MAX_TIMEOUT).or(TIMEOUT);
    let doc = "Largest result. A larger one does not reach the agent.";
    let max_result = section.field("max_result", doc).at_most(&GREATEST_RESULT).or(MAX_RESULT);
    let doc = "Containers of the server, or sessions at it, at the same time: each account has its own.";
    let max_instances = section.field("max_instances", doc).or(MAX_INSTANCES);
    let doc = "Time without a call after which a container or a session ends. The next call starts it.";
    let idle_timeout = section.field("idle_timeout", doc).or(IDLE_TIMEOUT);
    let doc =
        "Set if all accounts share one container or session: what one of them stores there, others may read.";
    let is_shared = section.field("shared", doc).or(false);
    let connection = read_connection(section);
    if is_shared && connection.is_some() {
        section.reject(
            "connection",
            "accounts that share a session cannot each have a credential: leave out `shared`".to_owned(),
        );
    }
    // The example from which the schema is built has no name.
    if name == "*" {
        return None;
    }
    let id = ToolServerName::parse(name).map_err(|error| section.reject_itself(error.to_string())).ok()?;
    if BUILT_IN.contains(&name) {
        section.reject_itself(format!("`{name}` is a name of built-in tools: use another one"));
    }
    let server = ToolServer {
        transport: transport?,
        tools,
        reads: reads.into_iter().collect(),
        timeout,
        max_result,
        connection,
        is_shared,
        max_instances,
        idle_timeout,
    };
    Some((id, server))
}

fn read_transport(name: &str, section: &Section<'_>) -> Option<ServerTransport> {
    let doc = "Address of a server that speaks streamable HTTP, `https://HOST/PATH`; `http://` for this host alone. No redirect is followed.";
    let url: Option<String> = section.field("url", doc).optional();
    let doc = "Image of a container in which the server runs, and speaks on standard input and output. Nothing is pulled.";
    let image: Option<Image> = section.field("image", doc).optional();
    let has_image = section.has("image");
    let stdio = read_stdio(section, image);
    match (url, has_image) {
        (Some(url), false) => {
            for setting in ["command", "environment", "network", "memory", "pids", "milli_cpu"] {
                if section.has(setting) {
                    let problem = "it is a setting of a container, and a server with `url` has none";
                    section.reject(setting, problem.to_owned());
                }
            }
            let url = ServiceUrl::parse(&url).map_err(|problem| section.reject("url", problem));
            url.ok().map(ServerTransport::Http)
        }
        (None, true) => {
            let stdio = stdio?;
            if stdio.command.first().is_none_or(String::is_empty) {
                let problem = "it names no program: set `command = [\"PROGRAM\", \"ARGUMENT\"]`";
                section.reject("command", problem.to_owned());
            }
            Some(ServerTransport::Stdio(stdio))
        }
        _ if name == "*" => None,
        _ => {
            section.reject_itself("set either `url`, or `image` and `command`".to_owned());
            None
        }
    }
}

/// Reads the settings of a container of `image`.
fn read_stdio(section: &Section<'_>, image: Option<Image>) -> Option<StdioServer> {
    let doc = "Program and arguments in the container; no shell is involved.";
    let command: Vec<String> = section.field("command", doc).list_or(vec![]);
    let doc = "Variables of the program. None that holds a secret.";
    let environment = section.values("environment", doc, |name, value: &String| {
        literal_error(name, value)
            .map_or(Ok(()), |problem| Err(problem.replace("an agent", "a server").into()))
    });
    let doc = "Docker's network of the container, which must exist. A server on a network can send elsewhere whatever agents give it.";
    let network: String = section.field("network", doc).or(NO_NETWORK.to_owned());
    let is_name = !network.is_empty()
        && network.starts_with(|c: char| c.is_ascii_alphanumeric())
        && network.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if !is_name || network == "host" {
        section.reject(
            "network",
            format!(
                "`{network}` is not a network of a container: not the host's own, and no other container's"
            ),
        );
    }
    let memory = section.field("memory", "Memory of the container, swap included.").or(ByteSize::mib(512));
    let pids = section.field("pids", "Processes and threads in the container.").or(128);
    let doc = "Processor time of the container, in thousandths of a core.";
    let milli_cpu = section.field("milli_cpu", doc).or(1000);
    Some(StdioServer { image: image?, command, environment, network, memory, pids, milli_cpu })
}

fn read_tools(server: &str, section: &Section<'_>) -> BTreeMap<String, ToolName> {
    let doc = "Tools of the server that may be used, by its own names. All others do not exist here.";
    let listed: Vec<String> = section.field("tools", doc).list_or(vec![]);
    if listed.len() > MAX_TOOLS {
        section.reject("tools", format!("a server has at most {MAX_TOOLS} tools"));
    }
    let mut tools = BTreeMap::new();
    for tool in listed {
        let name = format!("{server}{SEPARATOR}{tool}");
        if name.len() > MAX_NAME {
            section.reject("tools", format!("`{name}` has more than {MAX_NAME} characters"));
            continue;
        }
        match ToolName::parse(&name) {
            Ok(_) if tool.is_empty() => section.reject("tools", "a tool has no name".to_owned()),
            Ok(_) if tools.contains_key(&tool) => section.reject("tools", format!("`{tool}` occurs twice")),
            Ok(name) => drop(tools.insert(tool, name)),
            Err(_) if server == "*" => {}
            Err(error) => section.reject("tools", error.to_string()),
        }
    }
    tools
}

fn read_connection(section: &Section<'_>) -> Option<ConnectionProvider> {
    let doc = "Provider of connections. A call is sent with the credential that its account has there. Needs `url`.";
    let connection: Option<ConnectionProvider> = section.field("connection", doc).optional();
    let connection = connection?;
    if !section.has("url") {
        section.reject("connection", "a container is given no credential: set `url`".to_owned());
    }
    Some(connection)
}

impl ServerTransport {
    /// Returns the transport in a word, for output.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{ConfigErrors, Sources},
        settings::Settings,
    };

    fn read(text: &str) -> Result<BTreeMap<ToolServerName, ToolServer>, ConfigErrors> {
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() });
        settings.map(|settings| settings.tools.servers)
    }

    const MEMORY: &str = "[tools.servers.memory]\nimage = 'i:1'\ncommand = ['node', 'x.js']\n";

    #[test]
    fn a_server_has_no_network_and_writes_by_default() {
        let servers =
            read(&format!("{MEMORY}tools = ['read_graph', 'add']\nreads = ['read_graph']")).unwrap();
        let server = servers.values().next().unwrap();
        let ServerTransport::Stdio(stdio) = &server.transport else { panic!("{server:?}") };
        assert_eq!((stdio.network.as_str(), server.is_shared, server.reads.len()), ("none", false, 1));
        let names: Vec<_> = server.tools.values().map(ToolName::as_str).collect();
        assert_eq!(names, ["memory__add", "memory__read_graph"]);
    }

    #[test]
    fn a_wrong_entry_is_named() {
        let stdio = |name: &str, more: &str| {
            format!("[tools.servers.{name}]\nimage = 'i:1'\ncommand = ['n']\n{more}\n")
        };
        let long = "x".repeat(62);
        for (text, problem) in [
            (stdio("core", ""), "built-in"),
            (stdio("Memory", ""), "lower-case"),
            (stdio("a_b", ""), "lower-case"),
            (stdio("m", "tools = ['a', 'a']"), "occurs twice"),
            (stdio("m", "tools = ['a', 'A']"), "upper and lower case"),
            (stdio("m", "tools = ['caf\u{e9}']"), "m__caf"),
            (stdio("m", &format!("tools = ['{long}']")), "more than 64"),
            (stdio("m", "reads = ['b']"), "not in `tools`"),
            (stdio("m", "network = 'host'"), "not a network of a container"),
            (stdio("m", "network = 'container:x'"), "not a network of a container"),
            (stdio("m", "environment = { API_TOKEN = 'abc' }"), "a server is given no secret"),
            (stdio("m", "connection = 'notion'"), "set `url`"),
            (stdio("m", "url = 'https://a.example'"), "either `url`"),
            ("[tools.servers.m]".to_owned(), "either `url`"),
            ("[tools.servers.m]\nimage = 'i:1'".to_owned(), "names no program"),
            ("[tools.servers.m]\nurl = 'http://a.example/mcp'".to_owned(), "use https://"),
            ("[tools.servers.m]\nurl = 'https://a.example'\nmemory = '1 MiB'".to_owned(), "container"),
            (
                "[tools.servers.m]\nurl = 'https://a.example'\nconnection = 'n'\nshared = true".to_owned(),
                "share",
            ),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(problem), "{problem}: {error}");
        }
        // The control: the same entries with nothing wrong.
        for text in [
            stdio("m", "tools = ['a', 'b']\nreads = ['b']\nnetwork = 'bridge'"),
            "[tools.servers.m]\nurl = 'https://a.example/mcp'\nconnection = 'n'".to_owned(),
            "[tools.servers.m]\nurl = 'http://127.0.0.1:9/mcp'".to_owned(),
        ] {
            assert!(read(&text).is_ok(), "{text}: {:?}", read(&text));
        }
    }
}
