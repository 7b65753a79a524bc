//! Runs the mirror of one repository until it is stopped: SIGHUP syncs at once, SIGTERM ends it.

use std::process::ExitCode;

use platform_core::name::env;
use platform_runtime::{config::Environment, report, telemetry};

/// Messages that are printed unless the environment says otherwise.
const DEFAULT_FILTER: &str = "warn";

fn main() -> ExitCode {
    let environment = Environment::capture();
    telemetry::init(environment.get(env::SLUICE_LOG).or(Some(DEFAULT_FILTER)));
    match git_sync::run(&environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error("git-sync", &error);
            ExitCode::FAILURE
        }
    }
}
