//! Formats what became of a run's commits.

use platform_core::id::RunId;
use platform_runtime::terminal;
use runner_engine::relay::{RelayRecord, RelayStage};

use crate::plural::counted;

/// Digits of a commit that people see.
const SHORT: usize = 12;

/// Returns the stage of a relay in words, on one line.
pub(in crate::commands) fn summary(record: &RelayRecord) -> String {
    let branch = &record.order.branch;
    let work = record.stage.work().map(|work| {
        let [commits, files] = [(work.commits(), "commit"), (work.files(), "file")]
            .map(|(count, noun)| counted(count as u64, noun));
        let tip = work.tip().as_str();
        format!("{commits}, {files}, up to {}", &tip[..SHORT.min(tip.len())])
    });
    let work = work.unwrap_or_default();
    match &record.stage {
        RelayStage::Cloned => format!("{branch}: the agent works on its clone"),
        RelayStage::Collected => format!("{branch}: pending, its commits are not judged yet"),
        RelayStage::Accepted { .. } => format!("{branch}: pending, not pushed yet; {work}"),
        RelayStage::Pushed { .. } => format!("{branch}: pushed, the pull request is pending; {work}"),
        RelayStage::Published { pull_request: Some(pull_request), .. } => {
            format!("{branch}: {}; {work}", pull_request.url)
        }
        RelayStage::Published { pull_request: None, .. } => format!("{branch}: pushed; {work}"),
        RelayStage::Unchanged => format!("{branch}: the agent committed nothing"),
        RelayStage::Refused { objections } => {
            format!("{branch}: refused, {}", counted(objections.len() as u64, "objection"))
        }
        RelayStage::BranchMoved { .. } => {
            format!("{branch}: not pushed, the branch has moved since the agent began; {work}")
        }
        RelayStage::Failed { reason } => format!("{branch}: failed, {reason}"),
    }
}

/// Returns everything that is known of a relay, as lines.
pub(super) fn explanation(run_id: &RunId, record: &RelayRecord) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let value = terminal::safe(value).replace(['\n', '\t'], " ");
        text += &format!("{name:<11}{value}\n");
    };
    line("run", run_id.as_str());
    line("repository", record.order.url.as_str());
    line("base", &record.order.base.to_string());
    line("began with", record.start.as_str());
    line("commits", &summary(record));
    if let Some(fault) = &record.fault {
        line("last try", fault);
    }
    if let RelayStage::Refused { objections } = &record.stage {
        for objection in objections {
            line("objection", &objection.to_string());
        }
    }
    if record.stage.can_restart() || record.stage.is_pending() {
        line("try again", &format!("sluice git push {run_id}"));
    }
    text
}
