//! Remembers what is recorded of a turn, so that a worker that takes the run over repeats none of it.
//!
//! A gateway does not say where the previous worker stopped: its next event has the whole text of the current part of
//! the answer. So the beginning of that text is compared with the end of the stored text. Where they differ, a new part
//! of the answer has begun. This module does not store events.

use platform_core::{
    event::{ActivityKind, AgentEvent, Phase},
    id::RunId,
};
use runner_store::{Error, Store};

/// Separator between two parts of an answer, as the bridge reports it.
const PART_SEPARATOR: &str = "\n\n";
/// Labels of what a turn waits for.
pub(super) const APPROVAL: &str = "approval";
pub(super) const GATEWAY: &str = "gateway";

/// Events of a turn that are recorded.
#[derive(Debug, Default)]
pub(in crate::run) struct TurnRecord {
    /// Text that previous workers stored, until the gateway's text goes beyond it.
    stored: String,
    /// Text of the gateway that agrees with the stored text so far.
    repeated: String,
    present: Option<Activity>,
    /// Last activity that was neither a wait nor a compaction.
    at_work: Option<Activity>,
    activities: u64,
}

/// Activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Activity {
    kind: ActivityKind,
    label: Option<String>,
}

impl Activity {
    pub(super) fn new(kind: ActivityKind, label: Option<&str>) -> Self {
        Self { kind, label: label.map(str::to_owned) }
    }

    /// Returns the event of the activity.
    pub(super) fn event(&self) -> AgentEvent {
        AgentEvent::activity(self.kind, self.label.as_deref())
    }

    const fn is_interruption(&self) -> bool {
        matches!(self.kind, ActivityKind::Waiting | ActivityKind::Compacting)
    }
}

impl TurnRecord {
    /// Reads what previous workers have stored of the run's turn.
    ///
    /// # Errors
    /// If the store fails.
    pub(in crate::run) async fn read(store: &Store, run_id: &RunId) -> Result<Self, Error> {
        let mut record = Self::default();
        let mut after = 0;
        loop {
            let (_, events) = store.events_after(run_id, after).await?;
            let Some(last) = events.last() else { return Ok(record) };
            after = last.seq;
            for stored in &events {
                match stored.event() {
                    Ok(event) => record.add(event),
                    // The turn goes on: at worst a part of its text is told twice.
                    Err(_unreadable) => {
                        tracing::warn!(run = %run_id, seq = stored.seq, "stored event cannot be read");
                    }
                }
            }
        }
    }

    /// Adds a stored event.
    pub(super) fn add(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::TextDelta { delta } => self.stored += &delta,
            AgentEvent::Activity { kind, label } => drop(self.begin(&Activity { kind, label })),
            // The run began anew.
            AgentEvent::Status { phase: Phase::Queued } => *self = Self::default(),
            _ => {}
        }
    }

    /// Begins an activity. Returns false if it is the present one.
    pub(super) fn begin(&mut self, activity: &Activity) -> bool {
        if self.present.as_ref() == Some(activity) {
            return false;
        }
        self.activities += 1;
        self.present = Some(activity.clone());
        if !activity.is_interruption() {
            self.at_work = self.present.clone();
        }
        true
    }

    /// Returns the number of activities.
    pub(super) const fn activities(&self) -> u64 {
        self.activities
    }

    /// Returns the activity that goes on after a wait or a compaction; `None` if there is neither.
    pub(super) fn resumed(&self) -> Option<Activity> {
        self.present.as_ref().filter(|present| present.is_interruption())?;
        Some(self.at_work.clone().unwrap_or_else(|| Activity::new(ActivityKind::Thinking, None)))
    }

    /// Returns whether the turn waits for what the label names.
    pub(super) fn is_waiting_for(&self, label: &str) -> bool {
        let label = Activity::new(ActivityKind::Waiting, Some(label));
        self.present.as_ref() == Some(&label)
    }

    /// Returns the part of the gateway's next `text` that is not stored; `None` if the text has none so far.
    pub(super) fn new_text(&mut self, text: String) -> Option<String> {
        if self.stored.is_empty() {
            return Some(text);
        }
        self.repeated += &text;
        let parts = self.stored.match_indices(PART_SEPARATOR).map(|(at, _)| at + PART_SEPARATOR.len());
        let mut may_repeat = false;
        let mut new = None;
        for end in [0].into_iter().chain(parts).map(|start| &self.stored[start..]) {
            if end.is_empty() {
                continue;
            }
            new = self.repeated.strip_prefix(end).map(str::to_owned);
            if new.is_some() {
                break;
            }
            may_repeat |= end.starts_with(self.repeated.as_str());
        }
        if new.is_none() {
            if may_repeat {
                return None;
            }
            new = Some(format!("{PART_SEPARATOR}{}", self.repeated));
        }
        self.stored.clear();
        self.repeated.clear();
        new.filter(|new| !new.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(stored: &[&str]) -> TurnRecord {
        let mut record = TurnRecord::default();
        for delta in stored {
            record.add(AgentEvent::TextDelta { delta: (*delta).to_owned() });
        }
        record
    }

    #[test]
    fn text_after_a_takeover_continues_the_stored() {
        for (stored, pieces, new) in [
            (&[][..], &["One ", "two."][..], "One two."),
            (&["One "], &["One two."], "two."),
            (&["One ", "two"], &["One ", "two", " three"], " three"),
            (&["One"], &["One"], ""),
            (&["Let me look.", "\n\nIt"], &["It is", " done"], " is done"),
            (&["Let me look."], &["It is done"], "\n\nIt is done"),
            (&["Let me look."], &["L", "isten"], "\n\nListen"),
            (&["a\n\n"], &["a\n\nb"], "b"),
            (&["ä"], &["äö"], "ö"),
        ] {
            let mut record = after(stored);
            let told: String =
                pieces.iter().filter_map(|piece| record.new_text((*piece).to_owned())).collect();
            assert_eq!(told, new, "{stored:?} {pieces:?}");
        }
    }

    #[test]
    fn a_run_begun_anew_repeats_its_text() {
        let mut record = after(&["One "]);
        record.add(AgentEvent::Status { phase: Phase::Queued });
        assert_eq!(record.new_text("One two.".to_owned()).as_deref(), Some("One two."));
    }

    #[test]
    fn an_activity_goes_on_after_a_wait() {
        let mut record = TurnRecord::default();
        let thinking = Activity::new(ActivityKind::Thinking, None);
        let tool = Activity::new(ActivityKind::ToolUse, Some("exec"));
        let wait = Activity::new(ActivityKind::Waiting, Some(GATEWAY));
        assert_eq!(record.resumed(), None);
        record.add(Activity::new(ActivityKind::Compacting, None).event());
        assert_eq!(record.resumed(), Some(thinking));
        assert!(record.begin(&tool) && !record.begin(&tool));
        assert_eq!(record.resumed(), None, "it is at work");
        record.add(wait.event());
        assert!(record.is_waiting_for(GATEWAY) && !record.is_waiting_for(APPROVAL));
        assert_eq!((record.resumed(), record.activities()), (Some(tool), 3));
    }
}
