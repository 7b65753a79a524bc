//! Formats a run for `sluice runs show`.

use std::path::Path;

use platform_core::{
    control::{InexactCalls, Usage},
    json::{self, Bounds},
    money::NanoDollars,
};
use platform_runtime::terminal::{self, Output, Sanitizer};
use runner_engine::{relay::RelayRecord, run_request::RunRequest};
use runner_model::{conversation::Message, lifecycle::State};
use runner_store::{QueuePosition, ReceiptSums, ResourceKind, Run, RunHistory, RunRecord};
use runner_workspace as workspace;
use serde::Deserialize;

use super::{
    columns, figures, git,
    table::Table,
    times::{format_span, format_time},
    tools::ToolCallsOfRun,
};
use crate::plural::counted;

/// Most columns of a question that are shown.
const MAX_QUESTION_COLUMNS: usize = 120;

/// Returns the reason why a run waits; `None` if it does not wait.
fn waiting_reason(run: &Run, position: Option<QueuePosition>) -> Option<String> {
    if let Some(QueuePosition { ahead, waiting, held, lately }) = position {
        let no_worker = "; none was claimed in the last five minutes: is `sluice up` running?";
        return Some(format!(
            "for its turn: {ahead} of its account and priority go before it; {waiting} wait in all, {held} are active{}",
            if lately == 0 { no_worker } else { "" }
        ));
    }
    let waits_for_start =
        run.state == State::Queued && run.lease.as_ref().is_some_and(|lease| !lease.expired);
    waits_for_start.then(|| {
        "for its start: its worker starts no more than worker.max_concurrent_starts at a time".to_owned()
    })
}

/// Returns the beginning of the question of `order`, without sequences that would drive the terminal.
fn question(order: &str) -> Option<String> {
    beginning_of_question(order, MAX_QUESTION_COLUMNS)
}

/// Returns at most so many `columns` of the question of `order`, without sequences that would drive the terminal.
pub(super) fn beginning_of_question(order: &str, columns: usize) -> Option<String> {
    #[derive(Deserialize)]
    struct Order {
        messages: Vec<Message>,
    }
    let Order { messages } = json::from_str(order, Bounds::STORED).ok()?;
    let whole = terminal::safe(&messages.last()?.content).replace(['\n', '\t'], " ");
    let shown = columns::beginning(&whole, columns);
    Some(if shown == whole { whole } else { format!("{shown}…") })
}

/// Returns the thread of the run, if it is a turn of one.
fn thread(record: &RunRecord) -> Option<String> {
    let request = RunRequest::stored(record).ok()?;
    let thread = request.spec.state_key.as_ref()?;
    let shares = request.thread_workspace().is_some();
    Some(if shares { format!("{thread}, whose runs share a workspace") } else { thread.to_string() })
}

/// Run as `sluice runs show` shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownRun<'r> {
    pub(super) history: &'r RunHistory,
    /// Position in the queue, if the run waits to be claimed.
    pub(super) position: Option<QueuePosition>,
    /// Sums of its receipts, if it has some yet.
    pub(super) receipts: Option<&'r ReceiptSums>,
    /// Way of its commits, if it has a repository.
    pub(super) relay: Option<&'r RelayRecord>,
    /// Its calls of host tools.
    pub(super) tool_calls: &'r ToolCallsOfRun,
}

/// Returns the facts about the run itself, as names and values.
fn facts(
    ShownRun { history, position, receipts, relay, tool_calls }: ShownRun<'_>,
) -> Vec<(&'static str, String)> {
    let record = &history.record;
    let run = &record.run;
    let mut facts = vec![
        ("run", run.run_id.to_string()),
        ("state", state_text(run)),
        ("agent", run.agent.to_string()),
        ("account", run.account.to_string()),
    ];
    facts.extend(thread(record).map(|thread| ("thread", thread)));
    facts.extend([
        ("priority", run.priority.to_string()),
        ("attempt", format!("{}, epoch {}", run.attempt, run.epoch)),
        ("ordered", format_time(run.created)),
    ]);
    facts.extend(waiting_reason(run, position).map(|why| ("waits", why)));
    facts.extend(tool_calls.waiting_in_words().map(|call| ("waits", call)));
    facts.extend(run.started.map(|started| ("started", format_time(started))));
    facts.extend(run.ended.map(|ended| {
        ("ended", format!("{}, after {}", format_time(ended), format_span(run.created, ended)))
    }));
    facts.extend(
        run.lease
            .as_ref()
            .map(|lease| ("held by", format!("{} until {}", lease.owner, format_time(lease.until)))),
    );
    facts.extend(run.exit_code.map(|code| ("exit code", code.to_string())));
    facts.extend(
        run.oom_seen
            .filter(|seen| *seen)
            .map(|_| ("memory", "a process needed more than there was".to_owned())),
    );
    facts.extend(
        run.error.as_ref().map(|error| ("error", format!("{}: {}", error.code.code(), error.message))),
    );
    let detail = run.error.as_ref().and_then(|error| error.detail.as_ref());
    facts.extend(detail.map(|detail| ("detail", detail.for_operators().to_owned())));
    facts.extend(run.usage.map(|usage| {
        let Usage { calls, refused, tokens, inexact, .. } = usage;
        let [input, output] = [tokens.input, tokens.output].map(|count| figures::tokens(count, inexact));
        let cost = cost_text(run, receipts).unwrap_or_default();
        (
            "used",
            format!(
                "{} ({refused} refused), {input} tokens in, {output} out, {cost}",
                counted(calls, "call")
            ),
        )
    }));
    facts.extend(tool_calls.counts_in_words().map(|counts| ("host tools", counts)));
    facts.extend(receipts.map(|sums| {
        let ReceiptSums { receipts, cost, credits, .. } = sums;
        ("receipts", format!("{}, {cost}, {credits} credits", counted(*receipts, "receipt")))
    }));
    facts.extend(relay.map(|relay| ("repository", relay.order.url.as_str().to_owned())));
    facts.extend(relay.map(|relay| ("commits", git::summary(relay))));
    facts
}

impl ShownRun<'_> {
    /// Returns all details of the run as text. `workspaces` is the directory of workspaces.
    pub(super) fn text(self, workspaces: &Path) -> String {
        let record = &self.history.record;
        let mut text = String::new();
        let mut facts = facts(self);
        facts.extend(question(&record.wanted).map(|question| ("question", question)));
        for (name, value) in facts {
            let value = terminal::safe(&value).replace(['\n', '\t'], " ");
            text += &format!("{name:<10} {value}\n");
        }
        text += &tables(self.history, workspaces);
        if let Some(answer) = &record.answer {
            text += &format!("\n{}\n", Sanitizer::new(Output::Safe).clean(answer));
        }
        text
    }
}

/// Returns tables of the run's resources and events.
fn tables(RunHistory { record, events: stored }: &RunHistory, workspaces: &Path) -> String {
    let mut resources = Table::new(["RESOURCE", "NAME", "STATE"]);
    for resource in &record.resources {
        let name = match resource.kind {
            ResourceKind::Workspace => workspace::tree(workspaces, &resource.name).display().to_string(),
            _ => resource.name.clone(),
        };
        resources.row([resource.kind.name().to_owned(), name, resource.stage.name().to_owned()]);
    }
    let mut events = Table::new(["TIME", "EVENT", "DETAILS"]);
    for event in stored {
        events.row([format_time(event.at), event.kind.clone(), event.payload.clone()]);
    }
    let pruned = match record.pruned_events {
        0 => String::new(),
        count => format!("{} pruned (store.event_retention)\n", counted(count, "earlier event")),
    };
    format!("\n{resources}\n{pruned}{events}")
}

/// Returns the cost of a run: that of its receipts, or what the proxy has counted as long as there are none.
pub(super) fn cost_text(run: &Run, receipts: Option<&ReceiptSums>) -> Option<String> {
    let Usage { cost_nanodollars, inexact, .. } = run.usage?;
    let Some(sums) = receipts else { return Some(figures::cost(cost_nanodollars, inexact)) };
    // Corrections lower a cost at most to zero.
    let cost = NanoDollars(u64::try_from(sums.cost.0).unwrap_or_default());
    Some(figures::cost(cost, InexactCalls { unpriced: sums.unpriced, ..inexact }))
}

/// Returns the run's state in words. `(left)` says that the lease has expired, so no worker executes the run.
pub(super) fn state_text(run: &Run) -> String {
    let is_left = run.lease.as_ref().is_some_and(|lease| lease.expired);
    if is_left { format!("{} (left)", run.state) } else { run.state.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(content: &str) -> String {
        serde_json::json!({ "model": "m", "messages": [
            { "role": "user", "content": "before" }, { "role": "user", "content": content },
        ] })
        .to_string()
    }

    #[test]
    fn a_question_is_cut_and_cannot_break_out() {
        let shown = |content: &str| question(&order(content));
        assert_eq!(shown("two\nlines\x1b[2J"), Some("two lines".to_owned()));
        let cut = format!("{}…", "a".repeat(MAX_QUESTION_COLUMNS));
        assert_eq!(shown(&"a".repeat(MAX_QUESTION_COLUMNS + 1)), Some(cut));
        assert_eq!(question("no order"), None);
    }
}
