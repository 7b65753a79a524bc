//! Formats what became of a run's commits.

use platform_core::id::RunId;
use platform_runtime::terminal;
use runner_engine::relay::{AcceptedWork, CommitSummary, RelayRecord, RelayStage};
use runner_store::UnixMillis;

use crate::{commands::times::format_time, plural::counted};

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

/// Returns a line for each of a run's commits, the newest first, and one for those that are not listed.
pub(in crate::commands) fn commit_lines(record: &RelayRecord) -> String {
    let mut text = String::new();
    for CommitSummary { id, subject, authored_ms } in &record.commits {
        let time = authored_ms.map_or_else(|| "at no time".to_owned(), |time| format_time(UnixMillis(time)));
        let id = &id.as_str()[..SHORT.min(id.as_str().len())];
        text += &format!("commit     {id} {time} {}\n", terminal::safe(subject).replace(['\n', '\t'], " "));
    }
    let all = record.stage.work().map_or(0, AcceptedWork::commits);
    let more = all.saturating_sub(record.commits.len());
    if more > 0 && !record.commits.is_empty() {
        text += &format!("           and {}\n", counted(more as u64, "older commit"));
    }
    text
}

/// Returns what became of the commits of a run that has ended, as lines for its user.
pub(in crate::commands) fn outcome(run_id: &RunId, record: &RelayRecord) -> String {
    let mut text = format!("commits: {}\n", one_line(&summary(record)));
    if let RelayStage::Refused { objections } = &record.stage {
        objections.iter().for_each(|objection| text += &format!("  {}\n", one_line(&objection.to_string())));
    }
    if record.stage.can_restart() {
        text += &format!("explained: sluice git explain {run_id}; again: sluice git push {run_id}\n");
    }
    record.lacking.lines().iter().for_each(|line| text += &format!("clone: {line}\n"));
    if record.uncommitted {
        text += &format!("not committed: {}\n", uncommitted(run_id));
    }
    text
}

/// Says where work is that is in no commit.
fn uncommitted(run_id: &RunId) -> String {
    format!("some work is only in its workspace, which is kept for a while: sluice runs diff {run_id}")
}

fn one_line(text: &str) -> String {
    terminal::safe(text).replace(['\n', '\t'], " ")
}

/// Returns everything that is known of a relay, as lines.
pub(super) fn explanation(run_id: &RunId, record: &RelayRecord) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| push_line(&mut text, name, value);
    line("run", run_id.as_str());
    line("repository", record.order.url.as_str());
    line("base", &record.order.base.to_string());
    line("began with", record.start.as_str());
    record.lacking.lines().iter().for_each(|lacking| line("clone", lacking));
    line("commits", &summary(record));
    text += &commit_lines(record);
    let mut line = |name: &str, value: &str| push_line(&mut text, name, value);
    if let Some(fault) = &record.fault {
        line("last try", fault);
    }
    if let RelayStage::Refused { objections } = &record.stage {
        for objection in objections {
            line("objection", &objection.to_string());
        }
    }
    if record.uncommitted {
        line("left", &uncommitted(run_id));
    }
    if record.stage.can_restart() || record.stage.is_pending() {
        line("try again", &format!("sluice git push {run_id}"));
    }
    text
}

fn push_line(text: &mut String, name: &str, value: &str) {
    *text += &format!("{name:<11}{}\n", one_line(value));
}
