//! Derives the grant and the container of a request.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    grant::{CallLimits, Listener, RunGrant, Tap},
    host_tools::HostTools,
    id::{ToolName, WorkspaceId},
    limit::Millis,
    name::{PLACEHOLDER_KEY, env, path},
    start::{MAX_SIZE, Start},
    token::UnixSeconds,
};
use platform_runtime::settings::{Filling, ModelLimits};
use runner_docker::{self as docker, ContainerSettings, First, Program, SandboxSpec};

use super::context::RunContext;
use crate::{
    run_request::{RunRequest, RunSpec},
    tool_lists::ToolLists,
};

/// Time beyond `run_timeout` in which a run may start and settle, including a take-over or two.
const START_AND_SETTLE_GRACE: Duration = Duration::from_secs(600);

/// Parts of a container that exist before it is created.
pub(super) struct SandboxParts<'p> {
    /// Id of the workspace.
    pub(super) id: &'p WorkspaceId,
    pub(super) workspace: &'p Path,
    pub(super) socket_dir: PathBuf,
    /// Id of the image.
    pub(super) image: String,
}

impl RunContext<'_> {
    /// Returns the grant of the run; its calls arrive at `listener`.
    pub(super) fn grant(&self, listener: Listener) -> RunGrant {
        let request = self.request();
        let agent = self.agent();
        let host_tools = self.host_tools();
        let limits = self.engine.settings.get().tools.limits(&host_tools);
        RunGrant {
            run_id: request.run_id.clone(),
            attempt: self.run.attempt(),
            account: request.account.clone(),
            graph: request.agent_id.clone(),
            correlation: request.correlation.clone(),
            listener,
            limits: CallLimits {
                output_tokens: agent.output_tokens_per_call,
                times: agent.times,
                ..CallLimits::default()
            },
            budget: agent.budget,
            expires: Some(expiry(agent.run_timeout)),
            models: Some(agent.models.clone()).filter(|models| !models.is_empty()),
            tools: agent.tools.clone(),
            host_tools: HostTools { names: host_tools, limits },
            capabilities: agent.capabilities.iter().copied().collect(),
            ungranted_tools: agent.ungranted_tools,
            tap: Tap::Text,
        }
    }

    /// Returns the container of the run.
    pub(super) fn sandbox_spec(&self, parts: SandboxParts<'_>) -> SandboxSpec {
        let agent = self.agent();
        let SandboxParts { id, workspace, socket_dir, image } = parts;
        SandboxSpec {
            name: self.container_name(),
            image,
            first: First::Run(self.program()),
            settings: ContainerSettings::of(agent),
            labels: self.labels(id),
            workspace: workspace.to_owned(),
            socket_dir,
        }
    }

    /// Returns the labels of a container that is created for the run in this epoch, with the workspace `id`.
    pub(super) fn labels(&self, id: &WorkspaceId) -> BTreeMap<&'static str, String> {
        let RunRequest { run_id, agent_id, .. } = self.request();
        let labels = [self.engine.installation.as_str(), run_id.as_str(), agent_id.as_str(), id.as_str()];
        docker::labels(labels, self.run.epoch())
    }

    /// Returns the start file of a warm container; `None` if the request does not fit into one.
    pub(super) fn start_file(&self) -> Option<Start> {
        let Program { argv, environment, working_directory } = self.program();
        let start = Start::new(argv, environment, working_directory).ok()?;
        let fits = serde_json::to_vec(&start).is_ok_and(|text| text.len() as u64 <= MAX_SIZE);
        fits.then_some(start)
    }

    /// Returns the time that the agent may still run.
    pub(super) fn time_left(&self) -> Duration {
        let ran = self.run.recovered().started.unwrap_or_default();
        self.agent().run_timeout.duration().saturating_sub(ran)
    }

    /// Returns the name of the container that is created for the run in this epoch. Each epoch has its own name, so
    /// that no worker confuses two containers.
    pub(super) fn container_name(&self) -> String {
        format!("sluice-{}-{}.{}", self.engine.installation, self.run_id(), self.run.epoch())
    }

    /// Returns the host tools that the run may call.
    fn host_tools(&self) -> Vec<ToolName> {
        ToolLists::of(self.request(), &self.engine.settings.get()).granted()
    }

    fn program(&self) -> Program {
        let run_id = self.run_id();
        let RunSpec { agent, model, model_limits, .. } = self.spec();
        let filling = Filling { run_id, model };
        // An entry may have other placeholders and limits.
        let mut environment = default_environment(*model_limits);
        environment.extend(agent.environment.iter().map(|(name, value)| (name.clone(), value.fill(filling))));
        let api_base = format!("http://localhost:{}", agent.bridge_port);
        let own = [
            (env::OPENAI_BASE_URL, format!("{api_base}/v1")),
            (env::OPENAI_API_BASE, api_base.clone()),
            (env::ANTHROPIC_BASE_URL, api_base.clone()),
            (env::COGNI_GATEWAY_URL, api_base),
            (env::LLM_PROXY_PORT, agent.bridge_port.to_string()),
            (env::RUN_ID, run_id.to_string()),
            (env::COGNI_MODEL, model.clone()),
            (env::LLM_PROXY_SOCKET, path::SOCKET.to_owned()),
        ];
        let openclaw = agent.openclaw_variable();
        environment.extend(own.into_iter().chain(openclaw).map(|(name, value)| (name.to_owned(), value)));
        let host_tools: Vec<_> = self.host_tools().iter().map(ToolName::to_string).collect();
        if !host_tools.is_empty() {
            environment.insert(env::COGNI_HOST_TOOLS.to_owned(), host_tools.join(","));
        }
        Program {
            argv: agent.argv.iter().map(|argument| argument.fill(filling)).collect(),
            environment,
            working_directory: if self.spec().has_tree() { path::REPO } else { path::WORKSPACE }.to_owned(),
        }
    }
}

/// Returns the variables that an agent's entry may replace.
fn default_environment(model_limits: ModelLimits) -> BTreeMap<String, String> {
    let key = |name| (name, Some(PLACEHOLDER_KEY.to_owned()));
    let tokens = |name, tokens: Option<u64>| (name, tokens.map(|tokens| tokens.to_string()));
    let defaults = [
        key(env::OPENAI_API_KEY),
        key(env::ANTHROPIC_API_KEY),
        tokens(env::COGNI_CONTEXT_WINDOW, model_limits.context_window),
        tokens(env::COGNI_MAX_TOKENS, model_limits.max_output_tokens),
    ];
    defaults.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the time at which the grant of a run that starts now expires. Normally a worker closes the grant earlier.
fn expiry(runtime: Millis) -> UnixSeconds {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds((now + runtime.duration() + START_AND_SETTLE_GRACE).as_secs())
}
