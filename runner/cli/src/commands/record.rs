//! Formats a run for `sluice runs show`.

use std::path::Path;

use platform_core::control::Usage;
use platform_runtime::terminal::{self, Output, Sanitizer};
use runner_model::lifecycle::State;
use runner_store::{QueuePosition, Record, ResourceKind, Run};
use runner_workspace as workspace;

use super::{
    runs::{at, span, state},
    table::Table,
};

/// Returns why a queued run waits, if it does.
fn waits(run: &Run, standing: Option<QueuePosition>) -> Option<String> {
    if let Some(QueuePosition { ahead, waiting, held, lately }) = standing {
        let no_worker = "; none was taken to be worked on in the last five minutes: is `sluice up` running?";
        return Some(format!(
            "for its turn: {ahead} of its account and priority go before it; {waiting} wait in all, {held} are worked on{}",
            if lately == 0 { no_worker } else { "" }
        ));
    }
    let held = run.state == State::Queued && run.lease.as_ref().is_some_and(|lease| !lease.over);
    held.then(|| {
        "for its start: its worker starts no more than worker.max_concurrent_starts at a time".to_owned()
    })
}

/// Returns the facts about the run itself, as names and values.
fn lines(run: &Run, standing: Option<QueuePosition>) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("run", run.run_id.to_string()),
        ("state", state(run)),
        ("agent", run.agent.to_string()),
        ("account", run.account.to_string()),
        ("priority", run.priority.to_string()),
        ("attempt", format!("{}, epoch {}", run.attempt, run.epoch)),
        ("ordered", at(run.created)),
    ];
    lines.extend(waits(run, standing).map(|why| ("waits", why)));
    lines.extend(run.started.map(|started| ("started", at(started))));
    lines.extend(
        run.ended.map(|ended| ("ended", format!("{}, after {}", at(ended), span(run.created, ended)))),
    );
    lines.extend(
        run.lease.as_ref().map(|lease| ("held by", format!("{} until {}", lease.owner, at(lease.until)))),
    );
    lines.extend(run.exit_code.map(|code| ("exit code", code.to_string())));
    lines.extend(
        run.oom_seen
            .filter(|seen| *seen)
            .map(|_| ("memory", "a process needed more than there was".to_owned())),
    );
    lines.extend(
        run.error.as_ref().map(|error| ("error", format!("{}: {}", error.code.code(), error.message))),
    );
    let detail = run.error.as_ref().and_then(|error| error.detail.as_ref());
    lines.extend(detail.map(|detail| ("detail", detail.for_operators().to_owned())));
    lines.extend(run.usage.map(|usage| {
        let Usage { calls, refused, tokens, cost_nanodollars: cost } = usage;
        (
            "used",
            format!(
                "{calls} calls ({refused} refused), {} tokens in, {} out, {cost}",
                tokens.input, tokens.output
            ),
        )
    }));
    lines
}

/// Returns the whole text of a run. `workspaces` is the directory of workspaces.
pub(super) fn text(record: &Record, standing: Option<QueuePosition>, workspaces: &Path) -> String {
    let mut text = String::new();
    for (name, value) in lines(&record.run, standing) {
        let value = terminal::safe(&value).replace(['\n', '\t'], " ");
        text += &format!("{name:<10} {value}\n");
    }
    text += &history(record, workspaces);
    if let Some(answer) = &record.answer {
        text += &format!("\n{}\n", Sanitizer::new(Output::Safe).clean(answer));
    }
    text
}

/// Returns tables of a run's resources and of its events.
fn history(record: &Record, workspaces: &Path) -> String {
    let mut made = Table::new(["RESOURCE", "NAME", "STATE"]);
    for thing in &record.resources {
        let name = match thing.kind {
            ResourceKind::Workspace => workspace::tree(workspaces, &thing.name).display().to_string(),
            _ => thing.name.clone(),
        };
        made.row([thing.kind.name().to_owned(), name, thing.stage.name().to_owned()]);
    }
    let mut happened = Table::new(["TIME", "EVENT", "DETAILS"]);
    for event in &record.events {
        happened.row([at(event.at), event.kind.clone(), event.payload.clone()]);
    }
    let pruned = match record.pruned_events {
        0 => String::new(),
        count => format!("{count} earlier events have been pruned (store.event_retention)\n"),
    };
    format!("\n{made}\n{pruned}{happened}")
}
