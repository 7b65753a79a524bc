//! Checks the proxy, and the upstream as the proxy reaches it. A proxy that works is ok, whatever its upstream does.

use std::path::Path;

use platform_core::{
    control::{Health, NotReady, Readiness, Unstored, UpstreamState},
    record::Lost,
};
use platform_runtime::report;
use runner_control_client::{DataPlane, Error};

use super::{
    PROXY, UNOPENED, UPSTREAM,
    check::Check,
    upstream::{self, UpstreamProblem},
};
use crate::plural::counted;

/// Checks the proxy. The second check lists runs and gateways that the proxy could not open, if there are any.
pub(super) async fn proxy_checks(data_plane: &DataPlane) -> (Check, Option<Check>) {
    let answered = async { Ok::<_, Error>((data_plane.health().await?, data_plane.ready().await?)) };
    let (health, Readiness { reasons, .. }) = match answered.await {
        Ok(found) => found,
        Err(error @ Error::NotPermitted { .. }) => {
            return (Check::broken(PROXY, error.to_string(), "do as it says"), None);
        }
        Err(error) => {
            let fix = "start it with `sluice up`, or set proxy.run_dir to where it runs";
            return (Check::broken(PROXY, report::chain(&error), fix), None);
        }
    };
    let unopened = words(reasons.iter().filter(|reason| reason.concerns_single_run()));
    let fix = "remove what is in the way; the proxy tries again every second";
    let unopened = (!unopened.is_empty()).then(|| Check::broken(UNOPENED, unopened, fix));
    (proxy_check(&health, &reasons), unopened)
}

/// Checks the proxy itself. Its upstream and single runs have checks of their own.
fn proxy_check(health: &Health, reasons: &[NotReady]) -> Check {
    let concerns_proxy =
        |reason: &&NotReady| !reason.concerns_single_run() && !matches!(reason, NotReady::Upstream { .. });
    let reasons = words(reasons.iter().filter(concerns_proxy));
    let pid = health.pid;
    if !health.unstored.is_empty() {
        let kinds: Vec<_> = health.unstored.iter().map(|kind| unstored_in_words(*kind)).collect();
        let found = format!("pid {pid} holds what its disk refuses: {}", kinds.join(", "));
        let fix = "free space in proxy.state_dir: a restart would forget it; it is tried again every second";
        Check::broken(PROXY, found, fix)
    } else if !health.lost.is_empty() {
        let ranges: Vec<_> = health.lost.iter().map(|Lost { from, to }| format!("{from} to {to}")).collect();
        let found = format!("lines of its journal are gone: {}", ranges.join(", "));
        let fix = "restore the files in journal/ below proxy.state_dir and restart the proxy; `sluice audit verify` says more";
        Check::broken(PROXY, found, fix)
    } else if !reasons.is_empty() {
        Check::broken(PROXY, format!("pid {pid} is not ready: {reasons}"), "look at the proxy's log")
    } else {
        let Health { version, runs, journal_seq, .. } = health;
        let runs = counted(runs, "run");
        Check::ok(PROXY, format!("version {version}, pid {pid}, {runs}, journal at {journal_seq}"))
    }
}

/// Checks that the upstream answers and accepts the key, which is in `key_file`.
pub(super) async fn upstream_check(data_plane: &DataPlane, key_file: Option<&Path>) -> Check {
    let health = match data_plane.upstream().await {
        Ok(health) => health,
        Err(error) => return Check::broken(UPSTREAM, report::chain(&error), "look at the proxy's log"),
    };
    let Some(UpstreamProblem { found, fix }) = UpstreamProblem::of(&health, key_file) else {
        return Check::ok(UPSTREAM, upstream::in_words(&health));
    };
    let refused = match data_plane.health().await.map(|health| health.upstream_state) {
        Ok(UpstreamState::Down { since, .. } | UpstreamState::Probing { since, .. }) => {
            format!("; calls are refused since {since}")
        }
        Ok(UpstreamState::Up) | Err(_) => String::new(),
    };
    Check::broken(UPSTREAM, found + &refused, &fix)
}

fn words<'r>(reasons: impl Iterator<Item = &'r NotReady>) -> String {
    reasons.map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

const fn unstored_in_words(kind: Unstored) -> &'static str {
    match kind {
        Unstored::Freezes => "freezes",
        Unstored::Revocations => "revoked tokens",
        Unstored::ClosedRuns => "closed runs",
        Unstored::ExhaustedAccounts => "accounts below their floor",
        Unstored::AccountLimits => "limits of accounts",
    }
}

#[cfg(test)]
mod tests {
    use platform_core::control::{JournalState, ShownPrices};

    use super::*;
    use crate::doctor::Verdict;

    fn health() -> Health {
        Health {
            version: "1.0.0".to_owned(),
            pid: 7,
            uptime_s: 1,
            runs: 0,
            in_flight: 0,
            journal_id: "j".to_owned(),
            journal_seq: 0,
            journal: JournalState::Open,
            lost: Vec::new(),
            unstored: Vec::new(),
            upstream: "http://127.0.0.1:9".to_owned(),
            upstream_state: UpstreamState::Up,
            upstream_prices: ShownPrices::Read,
            longest_stop_ms: 1,
            reloads: 0,
        }
    }

    fn found(check: Check) -> String {
        match check.verdict {
            Verdict::Ok { found } => format!("ok {found}"),
            Verdict::Broken { found, .. } => format!("broken {found}"),
            Verdict::Unknown { needs } => format!("unknown {needs}"),
        }
    }

    #[test]
    fn the_proxy_is_not_blamed_for_its_upstream() {
        let down = NotReady::Upstream { since: "1970".to_owned(), why: "refused".to_owned() };
        assert!(found(proxy_check(&health(), std::slice::from_ref(&down))).starts_with("ok version 1.0.0"));
        let stopping = found(proxy_check(&health(), &[down, NotReady::Draining]));
        assert_eq!(stopping, "broken pid 7 is not ready: it is stopping");
    }

    #[test]
    fn problems_of_the_proxy_are_in_words() {
        let full = NotReady::Journal { state: JournalState::Full };
        let unmarked = NotReady::Journal { state: JournalState::Unmarked };
        let lost = Health { lost: vec![Lost { from: 5, to: 9 }], ..health() };
        let unstored = Health { unstored: vec![Unstored::Freezes, Unstored::ClosedRuns], ..health() };
        for (check, expected) in [
            (proxy_check(&health(), &[full]), "broken pid 7 is not ready: the disk of its journal is full"),
            (
                proxy_check(&health(), &[unmarked]),
                "broken pid 7 is not ready: a thread cannot mark calls in its journal, as on a full disk",
            ),
            (proxy_check(&lost, &[]), "broken lines of its journal are gone: 5 to 9"),
            (proxy_check(&unstored, &[]), "broken pid 7 holds what its disk refuses: freezes, closed runs"),
        ] {
            assert_eq!(found(check), expected);
        }
    }
}
