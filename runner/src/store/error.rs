//! What can be wrong with the store, told apart by what a caller does about it.

use std::{io, path::PathBuf};

use platform_core::{id::RunId, limit::Millis};
use platform_runtime::trust::Exposure;

use super::{Class, bounds::Full, host::Served, identity::HostId};
use crate::lifecycle::{Illegal, State};

/// Why the store did not do what it was asked. No variant shows a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is none.
    #[error("store.url is not an address of a store: {problem}")]
    Address {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file of the store, or of its password, cannot be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Other users can read or change what only this one should.
    #[error(transparent)]
    Exposed(Exposure),
    /// Nobody answers, or not to us.
    #[error("cannot open the store {store}")]
    Unreachable {
        /// Its address, without a password.
        store: String,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
    /// The file with this host's id cannot be used.
    #[error("{} {fault}", path.display())]
    HostId {
        /// The file.
        path: PathBuf,
        /// Its fault.
        #[source]
        fault: IdFault,
    },
    /// It serves another host, and one store serves one host.
    #[error(
        "the store {store} serves another host: {served}; this is host {here}. Use it there, or move it here with \
         `sluice store adopt`, or give this host a `store.url` or a `sandbox.installation` of its own"
    )]
    ServesAnother {
        /// Its address, without a password.
        store: String,
        /// The host it serves.
        served: Box<Served>,
        /// This host.
        here: HostId,
    },
    /// It cannot be moved: its host is at work.
    #[error(
        "the store {store} is not moved: {served} works on it, and has a lease for another {left}. Stop `sluice up` there, \
         let its `sluice run` end, and try again once the lease is over"
    )]
    HostAtWork {
        /// Its address, without a password.
        store: String,
        /// The host it serves.
        served: Box<Served>,
        /// Time until its last lease ends, if it is not renewed.
        left: Millis,
    },
    /// The store was opened without a host, and so only to read.
    #[error("the store was opened only to read: this is a mistake of the program")]
    OnlyReads,
    /// A later program has changed it.
    #[error("the store {store} has schema {found}, and this program knows {known}: use a newer one")]
    Newer {
        /// Its address.
        store: String,
        /// The schema it has.
        found: usize,
        /// The newest this program knows.
        known: usize,
    },
    /// It was not made by any release of this program.
    #[error("schema {version} of {store} is not the one that was released under this number")]
    Altered {
        /// The store, or the backup of one.
        store: String,
        /// The number.
        version: usize,
    },
    /// The database failed.
    #[error("cannot {action}")]
    Failed {
        /// What was tried.
        action: &'static str,
        /// Whether it may have been done all the same.
        done: Done,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
    /// The id is taken.
    #[error("run {run} was ordered already, and it was another order")]
    Conflict {
        /// The run.
        run: RunId,
    },
    /// Enough orders wait.
    #[error(transparent)]
    Full(Box<Full>),
    /// The run is a turn of a session in which another one is worked on.
    #[error(
        "run {by} is at work in this session: wait for its end, or have the run wait for that (`sluice run --detach`)"
    )]
    SessionBusy {
        /// The run that is at work.
        by: String,
    },
    /// There is no such run here.
    #[error("no run {run}")]
    Unknown {
        /// The run.
        run: RunId,
    },
    /// Somebody else has taken the run over: nothing may be done for it any more.
    #[error("run {run} was taken over: this is epoch {held}, and it is at {epoch}")]
    Fenced {
        /// The run.
        run: RunId,
        /// The epoch in whose name something was tried.
        held: u64,
        /// The epoch the run is at.
        epoch: u64,
    },
    /// The run's state does not allow it.
    #[error("run {run} does not do that")]
    Illegal {
        /// The run.
        run: RunId,
        /// What was tried, and from where.
        #[source]
        source: Illegal,
    },
    /// Things are only made while somebody is there to remove them.
    #[error("nothing is made for run {run}, which is {state}")]
    NotMaking {
        /// The run.
        run: RunId,
        /// Its state.
        state: State,
    },
    /// Another run was faster, or it is being removed.
    #[error("container {container} does not wait for a run any more")]
    NotSpare {
        /// Its name.
        container: String,
    },
    /// It was not said before it was done.
    #[error("run {run} never wanted a {kind} {name}")]
    NotWanted {
        /// The run.
        run: RunId,
        /// Kind of the thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// It is for whoever holds its run to say what became of it.
    #[error("the {kind} {name} of run {run} is not for others to remove: the run goes on, or began anew")]
    NotOver {
        /// The run.
        run: String,
        /// Kind of the thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Too much for one row.
    #[error("{what} has {bytes} bytes, more than {most}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
    /// A consumer's cursor only goes on.
    #[error("{consumer} has read up to {acknowledged} already, and now says {given}")]
    Backwards {
        /// The consumer.
        consumer: String,
        /// Where it was.
        acknowledged: u64,
        /// What it says now.
        given: u64,
    },
    /// A row holds what this program never writes.
    #[error("the store holds a {what} that is none: `{value}`")]
    Corrupt {
        /// What it should be.
        what: &'static str,
        /// What it is.
        value: String,
    },
    /// There is something that a restore would overwrite.
    #[error("the store {store} is not empty: --force replaces what is in it")]
    NotEmpty {
        /// Its address.
        store: String,
    },
    /// A file is not a whole backup.
    #[error("{}:{line}: {problem}", path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Faults of the file with a host's id.
#[derive(Debug, thiserror::Error)]
pub enum IdFault {
    /// The system refuses.
    #[error("cannot be {action}: check `sandbox.state_dir`, and who may write there")]
    Unusable {
        /// Operation that failed.
        action: &'static str,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Its content is something else.
    #[error(
        "holds no host id: put back its 32 digits, or remove it and move the store here with `sluice store adopt`"
    )]
    NoId,
}

/// Whether a transaction that failed may have been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It was not.
    No,
    /// Its commit got no answer.
    Perhaps,
}

/// SQLite's codes for "busy" and "locked", and Postgres' for what goes by: lost and refused connections, too many of
/// them, shutdown, serialization failure, deadlock, lock not available.
const PASSING: [&str; 25] = [
    "5", "6", "10", "13", "14", "266", "522", "778", "1034", "261", "262", "517", "773", "08000", "25P03",
    "08003", "08006", "40001", "40P01", "53100", "53300", "55P03", "57P01", "57P02", "57P03",
];

impl Error {
    /// Whether the same may succeed if it is tried again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Failed { source, .. } | Self::Unreachable { source, .. } => passes(source),
            _ => false,
        }
    }

    /// Returns whether the store serves another host, so that trying again is of no use.
    #[must_use]
    pub const fn serves_another(&self) -> bool {
        matches!(self, Self::ServesAnother { .. })
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            error if error.is_transient() => Class::Away,
            Self::Fenced { .. } => Class::Fenced,
            Self::Unknown { .. }
            | Self::Conflict { .. }
            | Self::Illegal { .. }
            | Self::NotMaking { .. }
            | Self::NotSpare { .. }
            | Self::NotWanted { .. }
            | Self::NotOver { .. }
            | Self::NotEmpty { .. }
            | Self::ServesAnother { .. }
            | Self::HostAtWork { .. }
            | Self::TooLarge { .. }
            | Self::Full(_)
            | Self::SessionBusy { .. }
            | Self::Backwards { .. } => Class::Refused,
            Self::Address { .. }
            | Self::File { .. }
            | Self::Exposed(_)
            | Self::HostId { .. }
            | Self::OnlyReads
            | Self::Unreachable { .. }
            | Self::Newer { .. }
            | Self::Altered { .. }
            | Self::Failed { .. }
            | Self::Corrupt { .. }
            | Self::Backup { .. } => Class::Broken,
        }
    }

    /// Whether it is worth another try at once. What has waited for a connection has been patient enough.
    pub(super) fn passes_soon(&self) -> bool {
        let waited = matches!(
            self,
            Self::Failed { source: sqlx::Error::PoolTimedOut, .. }
                | Self::Unreachable { source: sqlx::Error::PoolTimedOut, .. }
        );
        self.is_transient() && !waited
    }

    /// Whether it may have been done all the same.
    pub(super) const fn may_be_done(&self) -> bool {
        matches!(self, Self::Failed { done: Done::Perhaps, .. })
    }
}

fn passes(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| PASSING.contains(&code.as_ref())),
        _ => false,
    }
}

/// Names what was tried, of a failure before the commit.
pub(super) fn failed(action: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
    move |source| Error::Failed { action, done: Done::No, source }
}
