//! Names the reasons for decisions about resources, and puts them into words.

use std::{fmt, time::Duration};

use platform_core::limit::Millis;
use runner_model::lifecycle::State;
use runner_store::PoolStage;

/// Least age of a resource without a row before it is removed on demand: another process may be about to use it.
pub(super) const UNKNOWN_GRACE: Duration = Duration::from_mins(10);

/// Reason why a resource stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeepReason {
    /// The resource's run is live, and its present or next holder decides.
    Lives(State),
    /// The resource was kept on purpose.
    Deliberately,
    /// The configuration opens the grant, without a request.
    Configured,
    /// The proxy is closing the grant already.
    Closing,
    /// A container uses the workspace.
    InUse(String),
    /// A warm container is being created, waits for a run, or is being removed.
    Waits(PoolStage),
    /// The resource may have been created only a moment ago.
    Young,
    /// The container is a managed gateway, which only `sluice gateway` removes.
    Gateway(String),
    /// The container mirrors a repository, which only `sluice repo` removes.
    Repository(String),
    /// The container is a third-party server of tools with a live process.
    ToolServer(String),
}

/// Reason why a resource is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalReason {
    /// The resource's run has ended.
    Ended(State),
    /// A holder that had lost its lease created the resource.
    Fenced { made: u64, present: u64 },
    /// The workspace was kept for as long as its agent's entry says.
    KeptLongEnough(Millis),
    /// The workspace is among the oldest of those that were kept, and together they use too much space.
    KeptTooMuch,
    /// The owner of the warm container is gone.
    Abandoned,
    /// The process that started the server of tools is gone.
    OwnerGone,
    /// The resource is missing and its run has ended: only its row exists.
    Gone(State),
    /// No evidence proves it, but a person has requested the removal.
    OnDemand(UnknownReason),
}

/// Reason why the owner of a resource is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownReason {
    /// The store does not have the resource's run.
    NoRun,
    /// No row names the resource.
    NoRow,
    /// The container's name is not the one that this installation gives with that label.
    OtherName,
    /// The store has the resource's run, which never wanted it.
    NeverWanted,
    /// The resource's socket directory never belonged to its run.
    OtherSocket,
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lives(state) => write!(f, "its run is {state}"),
            Self::Deliberately => f.write_str("its run has ended, and it was kept deliberately"),
            Self::Configured => f.write_str("the configuration opens it"),
            Self::Closing => f.write_str("it is being closed"),
            Self::Waits(PoolStage::Wanted) => f.write_str("it is being made, to wait for a run"),
            Self::Waits(PoolStage::Ready) => f.write_str("it waits for a run"),
            Self::Waits(PoolStage::Leaving | PoolStage::Gone) => f.write_str("it is being removed"),
            Self::Gateway(gateway) => {
                write!(f, "it is gateway {gateway}: `sluice gateway down {gateway}` ends it")
            }
            Self::Repository(repository) => {
                write!(f, "it mirrors repository {repository}: `sluice repo rm {repository}` ends it")
            }
            Self::ToolServer(server) => write!(f, "it is tool server {server}, and its process lives"),
            Self::InUse(container) => write!(f, "container {container} has it mounted"),
            Self::Young => {
                write!(
                    f,
                    "nothing proves whose it is, and it is younger than {} min",
                    UNKNOWN_GRACE.as_secs() / 60
                )
            }
        }
    }
}

impl fmt::Display for RemovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(state) => write!(f, "its run has ended: {state}"),
            Self::Fenced { made, present } => {
                write!(
                    f,
                    "it is of epoch {made}; its run was taken over and is at epoch {present}, which removes it"
                )
            }
            Self::KeptLongEnough(keep) => {
                let keep = humantime::format_duration(keep.duration());
                write!(f, "it was kept for {keep} (`keep` of its agent)")
            }
            Self::KeptTooMuch => f.write_str(
                "kept workspaces use more than sandbox.kept_workspaces_size, and it is among the oldest",
            ),
            Self::Abandoned => f.write_str("it waited for a run, and the process that made it is gone"),
            Self::OwnerGone => f.write_str("it is a tool server, and the process that started it is gone"),
            Self::Gone(state) => write!(f, "it is not there, and its run has ended: {state}"),
            Self::OnDemand(why) => write!(f, "{why}; requested with --unknown"),
        }
    }
}

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRun => "this store knows no such run",
            Self::NoRow => "no row of this store names it",
            Self::OtherName => "it has our label, but is not called what we would call it",
            Self::NeverWanted => "its run never wanted it: another store's run of the same name may have",
            Self::OtherSocket => {
                "it has a socket that its run never had: another store's run of the same name may have"
            }
        })
    }
}
