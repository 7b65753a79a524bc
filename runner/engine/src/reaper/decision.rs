//! Decides which resources are dead. Pure: evidence in, decision and reason out.
//!
//! A resource is removed if its run has ended and a row of that run names this very resource. A container may also be
//! removed while its run goes on. For that its row has to say that it is gone, and its epoch has to be an earlier
//! one. Then a holder that had lost its lease made it too late.
//!
//! A row is written before each resource. So a resource without a row was made by another party: another
//! installation's store, or a person. Names may collide between stores. Directories of sockets cannot, they are
//! random: a container has to mount its own run's.
//!
//! An expired lease proves nothing. The worker that takes the run over decides about its resources.

use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, SystemTime},
};

use platform_core::{
    control::RunState,
    id::{InstallationId, RunId},
};
use runner_docker::Listed;
use runner_gateways as gateway;
use runner_model::lifecycle::State;
use runner_store::{Kind, PoolStage, Pooled, Resource, Stage};

use super::{
    evidence::{Grant, Standing, Thing},
    space::Space,
};

/// Least age of a resource without a row before it is removed on demand: another process may be about to use it.
pub(super) const GRACE: Duration = Duration::from_mins(10);

/// Options of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// Effect of its decisions.
    pub act: Act,
    /// Treatment of resources that nothing proves to be a run's.
    pub unknown: Leftovers,
    /// Treatment of workspaces that were kept on purpose when their runs ended.
    pub kept: Leftovers,
}

/// Effect of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Act {
    /// Carries out what is decided.
    #[default]
    Do,
    /// Only reports it.
    Say,
}

/// Treatment of resources that the reaper does not remove by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leftovers {
    /// The resources stay.
    #[default]
    Leave,
    /// The resources are removed.
    Remove,
}

/// Circumstances of a decision, besides the evidence.
#[derive(Debug)]
pub(super) struct Terms<'t> {
    pub(super) mode: Mode,
    pub(super) installation: &'t InstallationId,
    /// Runs that the proxy opens by itself.
    pub(super) configured: &'t BTreeSet<RunId>,
    pub(super) now: SystemTime,
}

/// Decision about a resource, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The resource stays.
    Keep(Kept),
    /// The resource is removed.
    Remove(Dead),
    /// Nothing proves which run owns it: a person decides.
    Unknown(Strange),
}

/// Reason that a resource stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    /// Its run goes on: it is for the run's holder, or for the next one.
    Lives(State),
    /// The resource was kept on purpose.
    Deliberately,
    /// The proxy opens it by itself.
    Configured,
    /// The proxy is closing it already.
    Closing,
    /// A container uses it.
    InUse(String),
    /// A warm container that waits for a run, or is about to, or is being removed.
    Waits(PoolStage),
    /// Its creation may be only a moment ago.
    Young,
    /// A gateway, which `sluice gateway` keeps.
    Gateway(String),
}

/// Proof that a resource is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dead {
    /// Its run has ended.
    Ended(State),
    /// A holder that had lost its lease made it.
    Fenced { made: u64, present: u64 },
    /// A warm container whose owner is gone.
    Abandoned,
    /// The resource is missing and its run has ended: only its row is left.
    Gone(State),
    /// Nothing proves it, but a person has asked for the removal.
    OnDemand(Strange),
}

/// Reason that the owner of a resource is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strange {
    /// The store does not know its run.
    NoRun,
    /// No row says which run it belongs to.
    NoRow,
    /// Its name is not the one that this installation gives with that label.
    OtherName,
    /// The store knows its run, which never made it.
    NeverWanted,
    /// The socket it mounts never belonged to its run.
    OtherSocket,
}

/// Decides about `thing`; `standing` is the store's knowledge of its run, if any.
pub(super) fn judge(thing: &Thing, standing: Option<&Standing>, terms: &Terms<'_>) -> Decision {
    match thing {
        Thing::Container(found) => container(found, standing, terms),
        Thing::Grant(grant) => self::grant(grant, standing, terms),
        Thing::Workspace(space) => workspace(space, standing, terms),
        Thing::WarmContainer(pooled) => warm(pooled),
        Thing::Row(row) => self::row(row, standing, terms),
    }
}

fn container(found: &Listed, standing: Option<&Standing>, terms: &Terms<'_>) -> Decision {
    if let Some(gateway) = found.gateway() {
        let is_named_so = found.name == gateway::sealed::container(terms.installation, gateway);
        return if is_named_so && found.run().is_none() {
            Decision::Keep(Kept::Gateway(gateway.to_owned()))
        } else {
            Decision::Unknown(Strange::OtherName)
        };
    }
    let Some(standing) = standing else {
        return if is_called_as_ours(found, terms.installation) {
            nobodys(Strange::NoRun, Some(found.created), terms)
        } else {
            Decision::Unknown(Strange::OtherName)
        };
    };
    let (over, row) = (standing.state.is_final(), standing.row(Kind::Container, &found.name));
    // A warm container was made in no epoch: it belongs to the one in which it was taken.
    let epoch = if found.run().is_some() { found.epoch() } else { row.map_or(0, |row| row.epoch) };
    if !over && epoch >= standing.epoch {
        return Decision::Keep(Kept::Lives(standing.state));
    }
    let Some(row) = row else { return Decision::Unknown(Strange::NeverWanted) };
    let has = |dir: &str| standing.row(Kind::Listener, dir).is_some();
    if !found.socket_dir().is_some_and(has) {
        return Decision::Unknown(Strange::OtherSocket);
    }
    match (over, row.stage) {
        (true, stage) if may_go(stage) => Decision::Remove(Dead::Ended(standing.state)),
        (true, _) => Decision::Keep(Kept::Deliberately),
        (false, Stage::Removed) => Decision::Remove(Dead::Fenced { made: epoch, present: standing.epoch }),
        (false, _) => Decision::Keep(Kept::Lives(standing.state)),
    }
}

fn grant(grant: &Grant, standing: Option<&Standing>, terms: &Terms<'_>) -> Decision {
    if terms.configured.contains(&grant.run) {
        return Decision::Keep(Kept::Configured);
    }
    let Some(standing) = standing else { return nobodys(Strange::NoRun, None, terms) };
    if !standing.state.is_final() {
        return Decision::Keep(Kept::Lives(standing.state));
    }
    let Some(row) = standing.row(Kind::Grant, grant.run.as_str()) else {
        return Decision::Unknown(Strange::NeverWanted);
    };
    let has = |dir: &str| standing.row(Kind::Listener, dir).is_some();
    if grant.socket_dir.as_ref().is_some_and(|dir| !has(dir.as_str())) {
        return Decision::Unknown(Strange::OtherSocket);
    }
    match grant.state {
        _ if !may_go(row.stage) => Decision::Keep(Kept::Deliberately),
        RunState::Open => Decision::Remove(Dead::Ended(standing.state)),
        RunState::Closing | RunState::Closed => Decision::Keep(Kept::Closing),
    }
}

fn workspace(space: &Space, standing: Option<&Standing>, terms: &Terms<'_>) -> Decision {
    let in_use = space.users.first().map(|user| Decision::Keep(Kept::InUse(user.clone())));
    let Some(standing) = standing else {
        return in_use.unwrap_or_else(|| nobodys(Strange::NoRow, Some(space.changed), terms));
    };
    if !standing.state.is_final() {
        return Decision::Keep(Kept::Lives(standing.state));
    }
    let Some(row) = standing.row(Kind::Workspace, space.id.as_str()) else {
        return Decision::Unknown(Strange::NeverWanted);
    };
    if !may_go(row.stage) && terms.mode.kept == Leftovers::Leave {
        return Decision::Keep(Kept::Deliberately);
    }
    in_use.unwrap_or(Decision::Remove(Dead::Ended(standing.state)))
}

/// Decides about a warm container: it is its owner's, until that is gone.
fn warm(pooled: &Pooled) -> Decision {
    if pooled.over || pooled.stage == PoolStage::Gone {
        Decision::Remove(Dead::Abandoned)
    } else {
        Decision::Keep(Kept::Waits(pooled.stage))
    }
}

/// Decides about the row of a missing resource.
fn row(row: &Resource, standing: Option<&Standing>, terms: &Terms<'_>) -> Decision {
    let Some(standing) = standing else { return Decision::Unknown(Strange::NoRun) };
    if !standing.state.is_final() {
        return Decision::Keep(Kept::Lives(standing.state));
    }
    let on_demand = row.kind == Kind::Workspace && terms.mode.kept == Leftovers::Remove;
    if !may_go(row.stage) && !on_demand {
        Decision::Keep(Kept::Deliberately)
    } else {
        Decision::Remove(Dead::Gone(standing.state))
    }
}

/// Returns whether a resource at `stage` goes with its run. A stage added later does not, until it is listed here.
const fn may_go(stage: Stage) -> bool {
    matches!(stage, Stage::Wanted | Stage::Made | Stage::Removed)
}

/// Returns whether this installation gives such a name: `sluice-{installation}-{run}`, with or without `.{epoch}`; or
/// that of a warm container.
fn is_called_as_ours(found: &Listed, installation: &InstallationId) -> bool {
    if found.is_warm() {
        return found.name.starts_with(&format!("sluice-{installation}-warm-"));
    }
    let Some(run) = found.run().filter(|run| RunId::accepts(run)) else { return false };
    let plain = format!("sluice-{installation}-{run}");
    found.name == plain || found.name == format!("{plain}.{}", found.epoch())
}

/// Decides about a resource that has no known run; `since` is when it was made, where that is known.
fn nobodys(why: Strange, since: Option<SystemTime>, terms: &Terms<'_>) -> Decision {
    let age = since.map(|since| terms.now.duration_since(since).unwrap_or_default());
    match terms.mode.unknown {
        Leftovers::Leave => Decision::Unknown(why),
        Leftovers::Remove if age.is_some_and(|age| age < GRACE) => Decision::Keep(Kept::Young),
        Leftovers::Remove => Decision::Remove(Dead::OnDemand(why)),
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(why) => why.fmt(f),
            Self::Remove(why) => why.fmt(f),
            Self::Unknown(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lives(state) => write!(f, "its run is {state}"),
            Self::Deliberately => f.write_str("its run has ended, and it was kept on purpose"),
            Self::Configured => f.write_str("the configuration opens it"),
            Self::Closing => f.write_str("it is being closed"),
            Self::Waits(PoolStage::Wanted) => f.write_str("it is being made, to wait for a run"),
            Self::Waits(PoolStage::Ready) => f.write_str("it waits for a run"),
            Self::Waits(PoolStage::Leaving | PoolStage::Gone) => f.write_str("it is being removed"),
            Self::Gateway(gateway) => {
                write!(f, "it is gateway {gateway}: `sluice gateway down {gateway}` ends it")
            }
            Self::InUse(container) => write!(f, "container {container} has it mounted"),
            Self::Young => {
                write!(f, "nothing proves whose it is, and it is younger than {} min", GRACE.as_secs() / 60)
            }
        }
    }
}

impl fmt::Display for Dead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(state) => write!(f, "its run has ended: {state}"),
            Self::Fenced { made, present } => {
                write!(
                    f,
                    "it is of epoch {made}; its run was taken over, is at epoch {present} and has it removed"
                )
            }
            Self::Abandoned => f.write_str("it waited for a run, and the process that made it is gone"),
            Self::Gone(state) => write!(f, "it is not there, and its run has ended: {state}"),
            Self::OnDemand(why) => write!(f, "{why}; asked for with --unknown"),
        }
    }
}

impl fmt::Display for Strange {
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
