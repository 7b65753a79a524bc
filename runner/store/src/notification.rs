//! Tells other processes of changed runs, with `NOTIFY` on Postgres. SQLite has nothing like it.
//!
//! Postgres delivers the notifications of a transaction when it commits, and those of one that fails never. Each
//! installation has its own channel, so others that share the database hear nothing of it.

use std::sync::Arc;

use platform_core::id::{InstallationId, RunId};

use super::{
    Tx,
    backend::Backend,
    changes::ChangedRuns,
    error::{Error, failed},
};

/// Sends the text `$2` on the channel `$1`. Cast, because the `Any` driver does not know the type of the result.
pub(super) const NOTIFY: &str = "SELECT CAST(pg_notify($1, $2) AS TEXT)";

/// Returns the channel of an installation; `None` if the database has no channels. Postgres allows 63 bytes.
pub(super) fn channel(backend: Backend, installation: &InstallationId) -> Option<Arc<str>> {
    backend.has_channels().then(|| format!("sluice.{installation}").into())
}

/// Notification, as one process sends it to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notification {
    /// The run has new events.
    Events(RunId),
    /// The run is new or in another state, and may have new events.
    State(RunId),
    /// Sent by a listener to itself.
    Probe,
}

impl Notification {
    /// Returns the text of the notification of `reporter`. It has at most 103 bytes.
    pub(super) fn text(&self, reporter: &str) -> String {
        match self {
            Self::Events(run_id) => format!("{reporter} events {run_id}"),
            Self::State(run_id) => format!("{reporter} state {run_id}"),
            Self::Probe => format!("{reporter} probe"),
        }
    }

    /// Parses a text; returns the notification with its reporter.
    pub(super) fn parse(text: &str) -> Option<(&str, Self)> {
        let mut words = text.split(' ');
        let mut word = || words.next();
        let reporter = word()?;
        let kind = word()?;
        let run_id = word().map(RunId::parse).transpose().ok()?;
        let notification = match (kind, run_id) {
            ("events", Some(run_id)) => Self::Events(run_id),
            ("state", Some(run_id)) => Self::State(run_id),
            ("probe", None) => Self::Probe,
            _ => return None,
        };
        Some((reporter, notification))
    }

    /// Returns the changes that the notification tells of.
    pub(super) fn changed(self) -> ChangedRuns {
        match self {
            Self::Events(run_id) => ChangedRuns { events: vec![run_id], states: Vec::new() },
            Self::State(run_id) => ChangedRuns { events: vec![run_id.clone()], states: vec![run_id] },
            Self::Probe => ChangedRuns::default(),
        }
    }
}

impl Tx {
    /// Notifies other processes of the changed runs, once this transaction commits.
    pub(super) async fn notify_others(&mut self) -> Result<(), Error> {
        let Some(channel) = self.channel.clone() else { return Ok(()) };
        let ChangedRuns { events, states } = &self.changed;
        let mut notifications: Vec<_> = states.iter().cloned().map(Notification::State).collect();
        // The notification of a state covers events. Postgres folds equal ones.
        let only_events = events.iter().filter(|run_id| !states.contains(run_id)).cloned();
        notifications.extend(only_events.map(Notification::Events));
        for notification in notifications {
            let text = notification.text(self.changes.reporter());
            let query = sqlx::query(NOTIFY).bind(&*channel).bind(text);
            query.execute(self.connection()).await.map_err(failed("notify other processes of a change"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_read_as_written() {
        let run_id = RunId::parse(&"r".repeat(63)).unwrap();
        let reporter = "f".repeat(32);
        for notification in
            [Notification::Events(run_id.clone()), Notification::State(run_id.clone()), Notification::Probe]
        {
            let text = notification.text(&reporter);
            assert!(text.len() <= 103, "{text}");
            assert_eq!(Notification::parse(&text), Some((reporter.as_str(), notification)));
        }
        for text in ["", "f", "f events", "f probe r1", "f else r1", "f state R"] {
            assert_eq!(Notification::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_channel_is_short_enough_for_postgres() {
        let installation = InstallationId::parse(&"i".repeat(32)).unwrap();
        assert!(channel(Backend::Postgres, &installation).unwrap().len() <= 63);
        assert_eq!(channel(Backend::Sqlite, &installation), None);
    }
}
