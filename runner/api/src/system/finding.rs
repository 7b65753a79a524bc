//! Says what does not work, and how to fix it.

use serde::Serialize;
use utoipa::ToSchema;

use super::SystemState;

/// Part that does not work.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SystemFinding)]
pub(super) struct FindingView {
    /// `store`, `docker`, `proxy`, `journal` or `dashboard`.
    part: &'static str,
    found: String,
    fix: &'static str,
}

impl FindingView {
    /// Returns what does not work.
    pub(super) fn of(state: &SystemState) -> Vec<Self> {
        let mut findings = Vec::new();
        let mut add = |part, found: String, fix| findings.push(Self { part, found, fix });
        match &state.store {
            Err(reason) => add(
                "store",
                reason.to_string(),
                "`sluice doctor` says what the store lacks; or set store.url",
            ),
            Ok(store) if !store.csp_reports.is_empty() => {
                let reports: u64 = store.csp_reports.iter().map(|report| report.reports).sum();
                let found =
                    format!("browsers have reported {reports} times that a page's policy blocked something");
                add("dashboard", found, "`sluice doctor` lists what was blocked");
            }
            Ok(_) => {}
        }
        if let Err(reason) = &state.docker {
            add(
                "docker",
                reason.to_string(),
                "start Docker, or set sandbox.docker_socket; `sluice doctor` says more",
            );
        }
        match &state.data_plane {
            Err(reason) => {
                add("proxy", reason.to_string(), "the log of `sluice up` says why the proxy does not answer")
            }
            Ok(data_plane) => {
                let reasons = data_plane.readiness.reasons.iter();
                reasons.for_each(|reason| add("proxy", reason.to_string(), "`sluice doctor` names the fix"));
                if !data_plane.health.lost.is_empty() {
                    let found = "lines of the journal are gone".to_owned();
                    add("journal", found, "`sluice audit verify` says which, and what to restore");
                }
                if !data_plane.health.unstored.is_empty() {
                    let found = "the proxy holds changes that its disk refuses".to_owned();
                    add("proxy", found, "free space in proxy.state_dir: a restart would forget them");
                }
            }
        }
        findings
    }
}
