//! Gives each error a code, and prints it as JSON for programs that asked for JSON.
//!
//! The shape is `{"error":{"code","message"}}`, one line on standard output. Standard error has the text, too.

use std::io::{self, Write};

use clap::{ArgMatches, error::ErrorKind};
use platform_runtime::{report, terminal};
use runner_api as api;
use runner_control_client as data_plane;
use runner_engine::{
    order::OrderError,
    relay::InvalidRepo,
    run::{LeaseError, NotAdmitted},
};
use runner_repos as repos;
use runner_store as store;
use serde_json::{Value, json};

use super::{
    dashboard::DashboardError,
    error::Error,
    tools::{NotAccepted, ToolFailed},
};

/// Option of all commands that can print JSON.
const JSON_OPTION: &str = "json";
/// Code of arguments that cannot be used.
const USAGE: &str = "usage";

impl Error {
    /// Returns the code under which programs know this error.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Configuration(_) | Self::Traces(_) => "configuration_invalid",
            Self::Misused(_) => USAGE,
            Self::NoGateway(_) | Self::Unknown(_) | Self::Repository(repos::Error::Unknown { .. }) => {
                "not_found"
            }
            Self::Repository(repos::Error::Docker(_)) => "docker_unavailable",
            Self::Repository(_) => "repository_failed",
            Self::TokenSecrets(_) => "token_secrets_unusable",
            Self::Store(error) => store_code(error),
            Self::Lease(error) => lease_code(error),
            Self::Order(error) => order_code(error),
            Self::DataPlane(data_plane::Error::Refused { code, .. }) => code,
            Self::DataPlane(data_plane::Error::Unexpected(_)) => "data_plane_failed",
            Self::DataPlane(_) | Self::Proxy(_) => "data_plane_unavailable",
            Self::Docker(_) => "docker_unavailable",
            Self::KeyFile(_) => "connection_unopened",
            Self::Credential(error) => error.code(),
            Self::Connection(_) => "connection_refused",
            Self::Tool(ToolFailed(error)) => &error.code,
            Self::NotAccepted(NotAccepted::NoServer(_) | NotAccepted::NoTool { .. }) => "not_found",
            Self::NotAccepted(NotAccepted::Failed(_) | NotAccepted::OtherDigest { .. }) => {
                "tool_not_accepted"
            }
            Self::NotDecided(error) => decision_code(error),
            Self::Files(_) => "files_refused",
            Self::Apply(_) => "apply_refused",
            Self::Relay(_) => "relay_failed",
            Self::NotEnded(_) => "run_not_ended",
            Self::LedgerInUse(_) => "ledger_in_use",
            Self::Upstream(_) => "upstream_unusable",
            Self::Setup(_) => "setup_refused",
            Self::Demo(_) => "demo_failed",
            Self::AgentImage(_) => "agent_not_added",
            Self::Workspace(_) => "workspace_failed",
            Self::InsufficientDisk(_) => "insufficient_disk",
            Self::Dashboard(DashboardError::NotRunning { .. }) => "api_unavailable",
            Self::Dashboard(DashboardError::Off | DashboardError::UnknownPort) => "api_off",
            Self::Api(api::StartError::Unbound { .. }) => "address_in_use",
            Self::Api(api::StartError::Tls(_)) => "certificate_unusable",
            Self::ManagedGateway(_) | Self::Gateway(_) | Self::GatewayConnection(_) | Self::DeviceKey(_) => {
                "gateway_failed"
            }
            Self::Id(_)
            | Self::Json(_)
            | Self::Clock(_)
            | Self::Failpoint(_)
            | Self::DisplayPanicked
            | Self::Io(_) => "internal",
        }
    }

    /// Returns this error as JSON. A full queue has more fields, for programs that try again.
    fn json(&self) -> Value {
        let mut error = match self {
            Self::Store(store::Error::Full(full)) => full.json(),
            _ => json!({ "message": report::chain(self) }),
        };
        error["code"] = self.code().into();
        json!({ "error": error })
    }
}

const fn decision_code(error: &store::DecideError) -> &'static str {
    match error {
        store::DecideError::Unknown { .. } => "not_found",
        store::DecideError::NotWaiting(_) => "call_not_waiting",
        store::DecideError::RunEnded { .. } => "run_ended",
        store::DecideError::Store(error) => store_code(error),
    }
}

const fn order_code(error: &OrderError) -> &'static str {
    match error {
        OrderError::UnknownAgent { .. }
        | OrderError::NotGranted { .. }
        | OrderError::NoModel { .. }
        | OrderError::InvalidModel { .. } => USAGE,
        OrderError::Repo(InvalidRepo::NotListed { .. }) => "repository_forbidden",
        OrderError::Repo(InvalidRepo::NotAllowed { .. }) => "repository_not_allowed",
        OrderError::Repo(InvalidRepo::NoCredential { .. }) => "configuration_invalid",
        OrderError::Repo(_) => "invalid_repository",
        OrderError::ToolNotGranted { .. } => "tool_not_granted",
        OrderError::Behaviour(_) => "configuration_invalid",
        OrderError::Unpriced(_) => "model_unpriced",
        OrderError::Store(error) => store_code(error),
    }
}

fn lease_code(error: &LeaseError) -> &'static str {
    match error {
        LeaseError::NotStored(error) => store_code(error),
        LeaseError::NotAdmitted(NotAdmitted::TooUrgent { .. }) => "priority_too_high",
        LeaseError::Exists(_) | LeaseError::Unwritable(_) | LeaseError::Unreadable(_) => "internal",
    }
}

const fn store_code(error: &store::Error) -> &'static str {
    use store::Error;
    match error {
        Error::Unknown { .. } | Error::NoPrincipal { .. } | Error::NoConnection { .. } => "not_found",
        Error::ConnectionExists { .. } => "connection_exists",
        Error::ConnectionLimit(_) => "connections_exhausted",
        Error::PrincipalExists { .. } | Error::PrincipalRevoked { .. } => "principal_id_taken",
        Error::Full(_) => "queue_full",
        Error::SessionBusy { .. } => "session_busy",
        Error::ThreadBusy { .. } => "thread_busy",
        Error::NoThread { .. } => "thread_unknown",
        Error::BranchTaken { .. } => "branch_taken",
        Error::RelayChanged { .. } => "relay_busy",
        Error::TopUpExists { .. } => "idempotency_key_taken",
        Error::StillActive { .. } => "run_active",
        Error::Forgotten { .. } => "not_repeatable",
        Error::Conflict { .. } => "run_id_taken",
        Error::HostAtWork { .. } | Error::OthersAtWork { .. } => "store_busy",
        Error::ServesAnother { .. } => "store_serves_another_host",
        Error::NotEmpty { .. } => "store_not_empty",
        Error::Backup { .. } | Error::BackupFile { .. } => "backup_unusable",
        Error::TooLarge { .. } => "too_large",
        _ => "store_failed",
    }
}

/// ErrorFormat in which the errors of a command are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    Text,
    /// JSON on standard output, in addition to the text.
    Json,
}

impl ErrorFormat {
    /// Returns the form that the command line asks for.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let is_json = matches.try_get_one::<bool>(JSON_OPTION).ok().flatten().is_some_and(|json| *json);
        match matches.subcommand() {
            _ if is_json => Self::Json,
            Some((_, matches)) => Self::of(matches),
            None => Self::Text,
        }
    }

    /// Reports the error that ended a command.
    pub(super) fn report(self, error: &Error) {
        if self == Self::Json {
            // Without a reader, the text on standard error is still there.
            drop(print_json(&error.json()));
        }
        report::error("sluice", error);
        if !rustix::process::geteuid().is_root() && was_forbidden(error) {
            drop(writeln!(io::stderr(), "sluice: next: run it as root, `sudo sluice …`"));
        }
    }
}

/// Returns whether the system has refused something that root may do.
fn was_forbidden(error: &Error) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Reports a command line that cannot be parsed, and ends the process. Help and version are not errors.
pub(super) fn refuse_usage(error: &clap::Error) -> ! {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The arguments may be no UTF-8: that may be what is wrong with them.
    if !is_help && std::env::args_os().any(|word| word == "--json") {
        let message = usage_message(&error.to_string());
        drop(print_json(&json!({ "error": { "code": USAGE, "message": message } })));
    }
    error.exit()
}

/// Returns what a rendered usage error says, in one line without the usage itself.
fn usage_message(rendered: &str) -> String {
    let lines = rendered.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

fn print_json(json: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{}", terminal::safe_json(&json.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{super::error::Misused, *};
    use crate::commands::command_line;

    #[test]
    fn an_error_is_an_object_with_code_and_message() {
        let error = Error::from(Misused("name a run".to_owned()));
        assert_eq!(error.json(), json!({ "error": { "code": "usage", "message": "name a run" } }));
        let refused =
            data_plane::Error::Refused { code: "reload_refused".to_owned(), message: "no".to_owned() };
        assert_eq!(Error::from(refused).json()["error"]["code"], "reload_refused");
    }

    #[test]
    fn a_usage_error_names_its_arguments() {
        for (line, expected) in [
            ("sluice audit show --json --run", "a value is required for '--run <RUN>' but none was supplied"),
            ("sluice runs apply", "the following required arguments were not provided: <RUN>"),
        ] {
            let error = command_line().try_get_matches_from(line.split(' ')).unwrap_err();
            assert_eq!(usage_message(&error.to_string()), expected, "{error}");
        }
    }

    #[test]
    fn json_is_wanted_where_the_option_is_given() {
        for (line, wanted) in [
            ("sluice runs show r1 --json", ErrorFormat::Json),
            ("sluice agents --json ls", ErrorFormat::Json),
            ("sluice run --json q", ErrorFormat::Json),
            ("sluice runs show r1", ErrorFormat::Text),
            ("sluice metrics", ErrorFormat::Text),
        ] {
            let matches = command_line().try_get_matches_from(line.split(' ')).unwrap();
            assert_eq!(ErrorFormat::of(&matches), wanted, "{line}");
        }
    }
}
