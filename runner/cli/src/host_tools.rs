//! Opens the host tools of this installation, and checks the names by which the configuration grants them.

use std::sync::Arc;

use platform_core::{closest::find_closest, id::ToolName};
use platform_runtime::{
    config::{About, ValidationError},
    settings::Settings,
};
use runner_connections::ConnectionBroker;
use runner_engine::relay::GitHubAccess;
use runner_repos::Refresher;
use runner_store::Store;
use runner_tools::{GatewayParts, ToolGateway};

/// Parts that host tools share with other callers in this process.
#[derive(Debug)]
pub(crate) struct SharedParts {
    /// Credentials of accounts.
    pub(crate) connections: ConnectionBroker,
    /// Refreshes of mirrored repositories.
    pub(crate) refresher: Refresher,
}

/// Returns the host tools under `settings`. A tool is unavailable if its credential cannot be read.
pub(crate) fn gateway(settings: &Settings, store: &Store, github: &GitHubAccess) -> ToolGateway {
    let connections = ConnectionBroker::of(settings, store.clone(), Arc::default());
    sharing_gateway(settings, store, github, SharedParts { connections, refresher: Refresher::default() })
}

/// Returns the same host tools, which share parts with other callers.
pub(crate) fn sharing_gateway(
    settings: &Settings,
    store: &Store,
    github: &GitHubAccess,
    shared: SharedParts,
) -> ToolGateway {
    let SharedParts { connections, refresher } = shared;
    let github = github.source().ok();
    let settings = Arc::new(settings.clone());
    ToolGateway::new(store.clone(), GatewayParts { settings, github, connections, refresher })
}

/// Returns an error for each host tool that agents, accounts and `tools.approval` name and that does not exist.
pub(crate) fn unknown_tools(settings: &Settings) -> Vec<ValidationError> {
    let mut known = runner_tools::built_in_names();
    // No server is started: the settings say which of its tools exist.
    known.extend(settings.tools.server_tools());
    let accounts = settings.accounts.named.iter().map(|(id, account)| (id.as_str(), account));
    let accounts = accounts.chain([("*", &settings.accounts.any)]);
    let accounts = accounts.filter_map(|(id, account)| {
        Some((format!("accounts.{id}.host_tools"), account.host_tools.as_ref()?))
    });
    let agents =
        settings.agents.iter().map(|(id, agent)| (format!("agents.{id}.host_tools"), &agent.host_tools));
    let approval = ("tools.approval".to_owned(), &settings.tools.approval);
    let errors = accounts.chain(agents).chain([approval]).flat_map(|(setting, tools)| {
        let unknown = tools.iter().filter(|tool| !known.contains(tool));
        let about = About::Setting(setting);
        unknown
            .map(|tool| ValidationError { about: about.clone(), problem: problem(tool, &known) })
            .collect::<Vec<_>>()
    });
    errors.collect()
}

fn problem(tool: &ToolName, known: &[ToolName]) -> String {
    match find_closest(tool.as_str(), known.iter().map(ToolName::as_str)) {
        Some(name) => format!("there is no host tool {tool}; did you mean {name}?"),
        None => format!("there is no host tool {tool}: `sluice tools ls` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use platform_runtime::config::Sources;

    use super::*;

    #[test]
    fn tools_of_a_server_are_known_without_it() {
        let text = "[agents.'t:a']\nimage = 'i:1'\nargv = ['a']\nhost_tools = ['memory__add', 'memory__ad']\n\
                    [tools.servers.memory]\nimage = 'absent:1'\ncommand = ['absent']\ntools = ['add']";
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let errors: Vec<_> = unknown_tools(&settings).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            ["agents.t:a.host_tools: there is no host tool memory__ad; did you mean memory__add?"]
        );
    }

    #[test]
    fn an_unknown_tool_is_named_with_the_nearest() {
        let text = "[agents.'t:a']\nimage = 'i:1'\nargv = ['a']\nhost_tools = ['core__get_current_tim', 'core__get_current_time']\n\
                    [accounts.a]\nhost_tools = ['a_quite_different_name_of_a_tool']\n\
                    [tools]\napproval = ['github__coment', 'github__label']";
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let errors: Vec<_> = unknown_tools(&settings).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "accounts.a.host_tools: there is no host tool a_quite_different_name_of_a_tool: `sluice tools ls` lists them",
                "agents.t:a.host_tools: there is no host tool core__get_current_tim; did you mean core__get_current_time?",
                "tools.approval: there is no host tool github__coment; did you mean github__comment?",
            ]
        );
    }
}
