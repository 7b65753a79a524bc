//! Reports what browsers say that the policy of the dashboard's pages has blocked.

use platform_runtime::report;
use runner_store::{CspReport, Store, StoredCspReport};

use super::check::Check;
use crate::plural::counted;

const DASHBOARD: &str = "dashboard";
/// Most reports in one check.
const MAX_SHOWN: usize = 5;
const CAUSES: &str = "Causes are an extension of the browser, a proxy that changes pages, or an attack. \
    Reports end after 7 days";

/// Lists the reports of the last days; `None` if there are none.
pub(crate) async fn dashboard_check(store: Option<&Store>) -> Option<Check> {
    let reports = match store?.csp_reports().await {
        Ok(reports) => reports,
        Err(error) => return Some(Check::broken(DASHBOARD, report::chain(&error), "look at the store")),
    };
    csp_check(&reports)
}

/// Returns the check of these reports. Their texts are printable ASCII, and short.
fn csp_check(reports: &[StoredCspReport]) -> Option<Check> {
    if reports.is_empty() {
        return None;
    }
    let line = |StoredCspReport { report, reports, .. }: &StoredCspReport| {
        let CspReport { directive, blocked, source, page } = report;
        let source = if source.is_empty() { String::new() } else { format!(", from {source}") };
        format!("{directive} blocked {blocked} on {page}{source} ({})", counted(*reports, "time"))
    };
    let mut lines: Vec<_> = reports.iter().take(MAX_SHOWN).map(line).collect();
    if let Some(more @ 1..) = reports.len().checked_sub(MAX_SHOWN) {
        lines.push(format!("and {more} more"));
    }
    let found = format!("browsers report what the policy of its pages blocked: {}", lines.join("; "));
    // Any client may report, so a report does not make a host unready.
    Some(Check::ok(DASHBOARD, format!("{found}. {CAUSES}")))
}

#[cfg(test)]
mod tests {
    use runner_store::UnixMillis;

    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn reports_say_what_was_blocked_where() {
        assert!(csp_check(&[]).is_none());
        let report = |number: usize| StoredCspReport {
            report: CspReport {
                directive: "script-src-elem".to_owned(),
                blocked: format!("inline{number}"),
                source: "http://h/sandbox:7".to_owned(),
                page: "http://h/sandbox".to_owned(),
            },
            reports: 2,
            last: UnixMillis(1),
        };
        let all: Vec<_> = (0..7).map(report).collect();
        let Some(Check { verdict: Verdict::Ok { found }, .. }) = csp_check(&all) else { panic!("{all:?}") };
        let first = "script-src-elem blocked inline0 on http://h/sandbox, from http://h/sandbox:7 (2 times)";
        assert!(found.contains(first) && found.contains("inline4") && !found.contains("inline5"), "{found}");
        assert!(found.contains("; and 2 more. Causes"), "{found}");
    }
}
