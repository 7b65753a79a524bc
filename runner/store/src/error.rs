//! Defines the errors of the store, with one variant for each reaction of a caller.

use std::{io, path::PathBuf, time::Duration};

use platform_core::{
    connection::ConnectionId,
    credits::Credits,
    id::{AccountId, ExternalId, PrincipalId, RunId},
    limit::Millis,
};
use platform_runtime::{retry::Transient, trust::Exposure};
use runner_model::lifecycle::{Illegal, State};

use super::{
    connection_place::{ConnectionPlace, MAX_CONNECTIONS},
    error_class::ErrorClass,
    identity::{HostId, Served},
    queue_full::QueueFull,
};

/// Reason why an operation of the store failed. No variant shows a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is invalid.
    #[error("store.url is not the address of a store: {problem}")]
    Address {
        /// Fault of the address.
        problem: &'static str,
    },
    /// A file of the store, or of its password, cannot be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// Operation that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// Other users can read or change a file that only its owner should.
    #[error(transparent)]
    Exposed(Exposure),
    /// The database cannot be reached, or refuses the connection.
    #[error("cannot open the store {store}")]
    Unreachable {
        /// Address of the store, without a password.
        store: String,
        /// Cause of the failure.
        #[source]
        source: sqlx::Error,
    },
    /// The file with this host's id cannot be used.
    #[error("the file {} with this host's id cannot be used", path.display())]
    HostId {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the file.
        #[source]
        fault: HostIdFault,
    },
    /// The store serves another host, and one store serves one host.
    #[error(
        "the store {store} serves another host: {served}; this is host {here}. Use it there, or move it here with \
         `sluice store adopt`, or give this host a `store.url` or a `sandbox.installation` of its own"
    )]
    ServesAnother {
        /// Address of the store, without a password.
        store: String,
        /// Host that the store serves.
        served: Box<Served>,
        /// This host.
        here: HostId,
    },
    /// The store cannot be moved: its host is active.
    #[error(
        "the store {store} is not moved: {served} works on it, and has a lease for another {left}. Stop `sluice up` there, \
         let its `sluice run` end, and try again once the lease is over"
    )]
    HostAtWork {
        /// Address of the store, without a password.
        store: String,
        /// Host that the store serves.
        served: Box<Served>,
        /// Time until its last lease ends, if it is not renewed.
        left: Millis,
    },
    /// The store cannot be replaced: another installation in it is active.
    #[error(
        "the store {store} is not replaced: {worker} is at work in it, with a lease for another {left}, and would lose its \
         runs. Stop `sluice up` there, let its `sluice run` end, and try again once the lease is over, or restore into a \
         `store.url` of its own"
    )]
    OthersAtWork {
        /// Address of the store, without a password.
        store: String,
        /// Other installation, and the host that the store serves for it.
        worker: String,
        /// Time until its last lease ends, if it is not renewed.
        left: Millis,
    },
    /// The store was opened without a host, and so allows only reads.
    #[error("the store was opened for reading only: this is a bug")]
    OnlyReads,
    /// A later program has changed the schema.
    #[error("the store {store} has schema {found}, and this program knows {known}: use a newer one")]
    Newer {
        /// Address of the store, without a password.
        store: String,
        /// Schema of the store.
        found: usize,
        /// Newest schema that this program knows.
        known: usize,
    },
    /// No release of this program had this schema.
    #[error("schema {version} of {store} is not the one that was released under this number")]
    Altered {
        /// Address of the store, or path of the backup.
        store: String,
        /// Number of the schema.
        version: usize,
    },
    /// The database failed.
    #[error("cannot {action}")]
    Failed {
        /// Operation that failed.
        action: &'static str,
        /// Possibility that the transaction was committed nevertheless.
        committed: Committed,
        /// Cause of the failure.
        #[source]
        source: sqlx::Error,
    },
    /// Another order has the same id.
    #[error("run id {run_id} is taken by a different request: choose another --run-id")]
    Conflict {
        /// The run.
        run_id: RunId,
    },
    /// The queue is full.
    #[error(transparent)]
    Full(Box<QueueFull>),
    /// The run is a turn of a session in which another run is active.
    #[error(
        "run {by} is active in this session: wait for its end, or queue this run behind it (`sluice run --detach`)"
    )]
    SessionBusy {
        /// Run that is active.
        by: String,
    },
    /// The thread has another last turn than the one that the new turn continues, or that one is not answered yet.
    #[error(
        "run {by} is the last one of this thread and has not been seen to end: wait for its end, and order again"
    )]
    ThreadBusy {
        /// Last run of the thread.
        by: String,
    },
    /// The workspace of the run's thread is another run's.
    #[error("another run has the workspace of the thread of {run_id}")]
    ThreadWorkspaceTaken {
        /// The run.
        run_id: RunId,
    },
    /// The account has no such thread.
    #[error("no thread {thread}")]
    NoThread {
        /// Key of the thread.
        thread: ExternalId,
    },
    /// The question of the run was removed, so it cannot be asked again.
    #[error("the question of run {run_id} was removed: order a new run")]
    Forgotten {
        /// The run.
        run_id: RunId,
    },
    /// Another account has used the branch.
    #[error("branch {branch} of {url} belongs to another account: choose another one with --branch")]
    BranchTaken {
        /// Address of the repository.
        url: String,
        /// The branch.
        branch: String,
    },
    /// Another process has changed the relay.
    #[error("another process works on the commits of run {run_id}")]
    RelayChanged {
        /// The run.
        run_id: RunId,
    },
    /// The idempotency key belongs to another top-up.
    #[error(
        "key {key} belongs to a top-up of {credits} credits for account {account}: use another key for another top-up"
    )]
    TopUpExists {
        /// The key.
        key: ExternalId,
        /// Account of the stored top-up.
        account: AccountId,
        /// Credits of the stored top-up.
        credits: Credits,
    },
    /// Texts of a run that has not ended are not removed.
    #[error("run {run_id} has not ended: cancel it first, or wait for its end")]
    StillActive {
        /// The run.
        run_id: String,
    },
    /// This installation has no such run.
    #[error("no run {run_id}: `sluice runs ls` lists those that the store knows")]
    Unknown {
        /// The run.
        run_id: RunId,
    },
    /// The id belongs to a principal.
    #[error(
        "principal {principal} exists: choose another id, or replace its token with `sluice principals rotate {principal}`"
    )]
    PrincipalExists {
        /// Id of the principal.
        principal: PrincipalId,
    },
    /// This installation has no such principal.
    #[error("no principal {principal}: `sluice principals ls` lists them")]
    NoPrincipal {
        /// Id that was given.
        principal: PrincipalId,
    },
    /// The principal was revoked. Its id never names another.
    #[error("principal {principal} was revoked: add one with another id, `sluice principals add`")]
    PrincipalRevoked {
        /// Id of the principal.
        principal: PrincipalId,
    },
    /// Another worker has taken the run over: its former holder can no longer change it.
    #[error("run {run_id} was taken over: this is epoch {held}, and it is at {epoch}")]
    Fenced {
        /// The run.
        run_id: RunId,
        /// Epoch of the refused token.
        held: u64,
        /// Present epoch of the run.
        epoch: u64,
    },
    /// The run's state does not allow the transition.
    #[error("run {run_id} does not allow this transition")]
    Illegal {
        /// The run.
        run_id: RunId,
        /// Refused transition, and the state of the run.
        #[source]
        source: Illegal,
    },
    /// The run's state allows no new resources: they are created only while a worker will remove them.
    #[error("no resource is created for run {run_id}, which is {state}")]
    NotMaking {
        /// The run.
        run_id: RunId,
        /// State of the run.
        state: State,
    },
    /// Another run claimed the warm container first, or it is being removed.
    #[error("container {container} is no longer available to runs")]
    NotWarm {
        /// Name of the container.
        container: String,
    },
    /// The resource was not recorded before it was changed.
    #[error("the {kind} {name} was never recorded for run {run_id}")]
    NotWanted {
        /// The run.
        run_id: RunId,
        /// Kind of the resource.
        kind: &'static str,
        /// Name of the resource.
        name: String,
    },
    /// Only the run's holder may record the removal: the run has not ended, or has wanted the resource again.
    #[error(
        "the {kind} {name} of run {run_id} may not be removed by others: the run continues, or was started again"
    )]
    NotOver {
        /// The run.
        run_id: String,
        /// Kind of the resource.
        kind: &'static str,
        /// Name of the resource.
        name: String,
    },
    /// A value is too large for one row.
    #[error("{what} has {bytes} bytes, more than {most}")]
    TooLarge {
        /// Name of the value.
        what: &'static str,
        /// Size of the value, in bytes.
        bytes: usize,
        /// Largest size, in bytes.
        most: usize,
    },
    /// A consumer's cursor would move backwards.
    #[error("{consumer} has acknowledged record {acknowledged} already, and now acknowledges {given}")]
    Backwards {
        /// The consumer.
        consumer: String,
        /// Sequence number that it has acknowledged.
        acknowledged: u64,
        /// Sequence number that it gave now.
        given: u64,
    },
    /// The account has a connection at the same place.
    #[error("account {} has a connection for {} at {} already: remove or replace it", place.account, place.scope, place.provider)]
    ConnectionExists {
        /// Account, provider and scope.
        place: ConnectionPlace,
    },
    /// The account has as many connections as it may have.
    #[error(
        "account {0} has {MAX_CONNECTIONS} connections already, and may have no more: remove one that is not used"
    )]
    ConnectionLimit(AccountId),
    /// The connection does not exist.
    #[error("there is no connection {connection}")]
    NoConnection {
        /// Id of the connection.
        connection: ConnectionId,
    },
    /// A row holds a value that this program never writes.
    #[error("the store holds an invalid {what}: `{value}`")]
    Corrupt {
        /// Name of the value.
        what: &'static str,
        /// Value that was found.
        value: String,
    },
    /// The store has content that a restore would overwrite.
    #[error("the store {store} is not empty: --force replaces what is in it")]
    NotEmpty {
        /// Address of the store, without a password.
        store: String,
    },
    /// The file that was named for a backup cannot be used.
    #[error("cannot {action} {}: name a file in a directory that exists, and that you may use", path.display())]
    BackupFile {
        /// Operation that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// A file is not a complete backup.
    #[error("{}:{line}: {problem}", path.display())]
    Backup {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Fault of the line.
        problem: &'static str,
    },
}

/// Faults of the file with a host's id.
#[derive(Debug, thiserror::Error)]
pub enum HostIdFault {
    /// The system refuses.
    #[error("it cannot be {action}: check `sandbox.state_dir`, and who may write there")]
    Unusable {
        /// Operation that failed.
        action: &'static str,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The file does not contain an id.
    #[error(
        "it holds no host id: put back its 32 digits, or remove it and move the store here with `sluice store adopt`"
    )]
    NoId,
}

/// Possibility that a failed transaction was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// The transaction was not committed.
    No,
    /// The commit got no answer.
    Perhaps,
}

/// Codes of transient failures. SQLite's: busy, locked, I/O error, full disk, file that cannot be opened. Postgres':
/// lost and refused connections, too many connections, shutdown, full disk, serialization failure, deadlock, lock not
/// available.
const TRANSIENT_CODES: [&str; 25] = [
    "5", "6", "10", "13", "14", "266", "522", "778", "1034", "261", "262", "517", "773", "08000", "25P03",
    "08003", "08006", "40001", "40P01", "53100", "53300", "55P03", "57P01", "57P02", "57P03",
];

impl Error {
    /// Returns whether the store serves another host, so that a retry is pointless.
    #[must_use]
    pub const fn serves_another(&self) -> bool {
        matches!(self, Self::ServesAnother { .. })
    }

    /// Returns the class of the failure.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            error if error.is_transient() => ErrorClass::Unavailable,
            Self::Fenced { .. } => ErrorClass::Fenced,
            Self::Unknown { .. }
            | Self::Conflict { .. }
            | Self::Illegal { .. }
            | Self::NotMaking { .. }
            | Self::NotWarm { .. }
            | Self::ThreadWorkspaceTaken { .. }
            | Self::NotWanted { .. }
            | Self::NotOver { .. }
            | Self::NotEmpty { .. }
            | Self::ServesAnother { .. }
            | Self::HostAtWork { .. }
            | Self::OthersAtWork { .. }
            | Self::TooLarge { .. }
            | Self::Full(_)
            | Self::SessionBusy { .. }
            | Self::ThreadBusy { .. }
            | Self::NoThread { .. }
            | Self::StillActive { .. }
            | Self::Forgotten { .. }
            | Self::TopUpExists { .. }
            | Self::BranchTaken { .. }
            | Self::RelayChanged { .. }
            | Self::PrincipalExists { .. }
            | Self::NoPrincipal { .. }
            | Self::PrincipalRevoked { .. }
            | Self::ConnectionExists { .. }
            | Self::ConnectionLimit(_)
            | Self::NoConnection { .. }
            | Self::Backwards { .. } => ErrorClass::Refused,
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
            | Self::Backup { .. }
            | Self::BackupFile { .. } => ErrorClass::Broken,
        }
    }

    /// Returns whether a short retry is worthwhile. After the timeout of a wait for a connection it is not.
    pub(super) fn is_short_lived(&self) -> bool {
        let timed_out = matches!(
            self,
            Self::Failed { source: sqlx::Error::PoolTimedOut, .. }
                | Self::Unreachable { source: sqlx::Error::PoolTimedOut, .. }
        );
        self.is_transient() && !timed_out
    }

    /// Returns whether the operation may have been committed nevertheless.
    pub(super) const fn may_be_done(&self) -> bool {
        matches!(self, Self::Failed { committed: Committed::Perhaps, .. })
    }
}

impl Transient for Error {
    /// Longest wait for an unavailable store where a run cannot continue without it.
    const RETRY_TIMEOUT: Duration = Duration::from_secs(300);

    fn is_transient(&self) -> bool {
        match self {
            Self::Failed { source, .. } | Self::Unreachable { source, .. } => is_transient(source),
            _ => false,
        }
    }
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| TRANSIENT_CODES.contains(&code.as_ref()))
        }
        _ => false,
    }
}

/// Returns a function that converts a failure before the commit to an error. `action` names the failed operation.
pub(super) fn failed(action: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
    move |source| Error::Failed { action, committed: Committed::No, source }
}
