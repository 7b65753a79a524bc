//! Reads the runs that the proxy opens on its own, for sandboxes that another program starts.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    budget::Budget,
    grant::{CallLimits, Correlation, Listener, RunGrant, Tap, UngrantedTools},
    host_tools::HostTools,
    id::{AccountId, AgentId, RunId},
    limit::{self, MAX_SOCKET_PATH},
    name::SANDBOX_UID,
};

use super::{DEFAULT_AGENT, SectionName, Settings, agents, budgets};
use crate::{
    config::{About, Section, ValidationError, written_as_word},
    socket,
    trust::{Exposure, Trusted, check_directory},
};

/// `[runs."id"]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticRun {
    /// Grant of the run.
    pub grant: RunGrant,
    /// Socket of the run; absent if it calls on the shared listener.
    pub socket: Option<PathBuf>,
}

impl StaticRun {
    /// Returns the directory on the way to the socket that the run's agent, or another user, owns or can write to. Such
    /// a user could replace the socket.
    #[must_use]
    pub fn exposed_directory(&self, trusted: &Trusted) -> Option<Exposure> {
        check_directory(self.socket.as_deref()?.parent()?, trusted).err()
    }
}

written_as_word!(Tap { Off: "off", Text: "text" });
written_as_word!(UngrantedTools { Refuse: "refuse", Drop: "drop" });

pub(super) fn read(root: &Section<'_>) -> BTreeMap<RunId, StaticRun> {
    let read = |id: &str, section: &Section<'_>| {
        let run_id = RunId::parse(id).map_err(|error| section.reject_itself(error.to_string())).ok();
        let socket = section
            .field(
                "socket",
                "Path of its socket, in an existing directory; without one it calls on `proxy.listen`.",
            )
            .optional::<PathBuf>();
        let peer_uid = section
            .field("peer_uid", "User id on the host whose processes may use its socket.")
            .may_be_zero()
            .or(SANDBOX_UID);
        let listener = if socket.is_some() { Listener::Unix { peer_uid } } else { Listener::Shared };
        let account = section.field("account", "Account that pays. Needed.").optional();
        // A run with an invalid id is read as well, so that all its errors are found.
        let grant = read_grant(section, run_id.clone().unwrap_or_else(placeholder_id), account, listener);
        Some((run_id?, StaticRun { grant, socket }))
    };
    let doc =
        "Runs that the proxy opens by itself, by run id, for sandboxes that are not started by `sluice`.";
    root.each(SectionName::Runs.name(), doc, read).into_iter().flatten().collect()
}

fn placeholder_id() -> RunId {
    RunId::parse("unnamed").expect("it follows its own rule")
}

fn read_grant(
    section: &Section<'_>,
    run_id: RunId,
    account: Option<AccountId>,
    listener: Listener,
) -> RunGrant {
    let field = |name, doc| section.field(name, doc);
    let models = field("models", "Models its calls may name; any if empty.").list_or(vec![]);
    let tools =
        field("tools", "Tools its calls may offer a model, by exact name; any if absent, none if empty.")
            .list();
    let capabilities = field(
        "capabilities",
        "Services that its calls may reach beyond the model; the names are those of `[agents]`.",
    );
    let limits = CallLimits {
        request_body: field("max_request_body", "Largest body of a request.")
            .or(limit::data_plane::REQUEST_BODY),
        output_tokens: field(
            "output_tokens_per_call",
            "Most tokens of one answer, reasoning included. It replaces a larger or missing limit of a call.",
        )
        .or(limit::data_plane::OUTPUT_TOKENS),
        times: agents::read_times(section),
    };
    RunGrant {
        run_id,
        attempt: field("attempt", "Number of the run's attempt.").may_be_zero().or(0),
        account: account.unwrap_or_else(|| {
            section.reject_itself("it needs an `account`".to_owned());
            AccountId::parse("unknown").expect("it follows its own rule")
        }),
        graph: field("graph", "Agent of the run, `family:name`; recorded, and passed to the upstream.")
            .or(AgentId::parse(DEFAULT_AGENT).expect("it follows its own rule")),
        correlation: Correlation {
            user: field("user", "User on whose behalf it runs.").optional(),
            session: field("session", "Session it belongs to.").optional(),
            existing_trace: field("existing_trace", "Trace that the application has opened.").optional(),
            trace_user: field("trace_user", "The user as the tracing system knows them.").optional(),
        },
        listener,
        limits,
        budget: budgets::budget(section, &Budget::default()),
        expires: None,
        models: Some(models).filter(|models| !models.is_empty()),
        tools,
        // The control plane knows no such run, so it could execute no tool for it.
        host_tools: HostTools::default(),
        capabilities: capabilities.list_or(vec![]).into_iter().collect(),
        ungranted_tools: agents::read_ungranted_tools(section),
        tap: field("tap", "Whether its answers may be watched while they stream: `off` or `text`.")
            .or(Tap::Off),
    }
}

/// Returns conflicts between runs, and between runs and other settings.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let mut sockets = BTreeMap::new();
    let reserved = settings.proxy.own_dirs().map(|dir| socket::resolved(&dir));
    let mut errors = Vec::new();
    for (id, run) in &settings.runs {
        let problem = match &run.socket {
            None if settings.proxy.listen.is_none() => {
                Some("it has no `socket`, and there is no `proxy.listen` to call on".to_owned())
            }
            None => None,
            Some(socket) if socket.as_os_str().len() > MAX_SOCKET_PATH => {
                Some(format!("the path of its socket has more than {MAX_SOCKET_PATH} bytes"))
            }
            Some(socket) => {
                let path = socket::resolved(socket);
                if reserved.iter().any(|dir| path.starts_with(dir)) {
                    Some("its socket is in a directory of the proxy's own sockets".to_owned())
                } else {
                    sockets.insert(path, id).map(|other| format!("run {other} has the same socket"))
                }
            }
        };
        let about = About::Setting(format!("runs.{id}"));
        errors.extend(problem.map(|problem| ValidationError { about, problem }));
    }
    errors
}
