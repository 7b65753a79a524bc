//! Tests the decisions about warm containers, before and after a run has claimed them.

use runner_store::{PoolEntry, PoolStage, WarmContainer};

use super::*;

/// Returns a warm container in `stage`.
fn warm(stage: PoolStage) -> PoolEntry {
    let warm = WarmContainer {
        container: "sluice-here-warm-1".to_owned(),
        template: "template".to_owned(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        workspace: WorkspaceId::parse(W1).unwrap(),
        listener: SocketDirName::from_random(OURS),
    };
    PoolEntry { warm, owner: "here/1/2".to_owned(), stage, lease_expired: false, changed: UnixMillis(0) }
}

/// Returns a warm container after its owner has gone.
fn abandoned(stage: PoolStage) -> PoolEntry {
    PoolEntry { lease_expired: true, ..warm(stage) }
}

/// Returns a claimed warm container. Docker keeps showing the labels from before the claim.
fn claimed() -> FoundResource {
    let FoundResource::Container(mut found) = container(&named(1), 1, OURS) else { unreachable!() };
    found.labels.remove(label::RUN_ID);
    found.labels.remove(label::EPOCH);
    found.labels.insert(label::TEMPLATE.to_owned(), "template".to_owned());
    FoundResource::Container(found)
}

#[test]
fn a_warm_container_goes_with_its_owner() {
    use PoolStage::{Gone, Leaving, Ready, Wanted};
    let decide = |entry: PoolEntry| decide(&FoundResource::WarmContainer(entry), None, Mode::default());
    for stage in [Wanted, Ready, Leaving] {
        assert_eq!(decide(warm(stage)), Decision::Keep(KeepReason::Waits(stage)));
        assert_eq!(decide(abandoned(stage)), Decision::Remove(RemovalReason::Abandoned));
    }
    assert_eq!(decide(warm(Gone)), Decision::Remove(RemovalReason::Abandoned), "it came late");
}

#[test]
fn a_claimed_container_is_of_its_runs_epoch() {
    let of = |state, epoch, stage| decide(&claimed(), run(state, epoch, stage).as_ref(), Mode::default());
    for stage in [ResourceState::Wanted, ResourceState::Made, ResourceState::Removed] {
        assert_eq!(
            of(State::Running, 1, stage),
            Decision::Keep(KeepReason::Lives(State::Running)),
            "its holder decides"
        );
        assert_eq!(of(ENDED, 1, stage), Decision::Remove(RemovalReason::Ended(ENDED)));
        assert_eq!(of(ENDED, 2, stage), Decision::Remove(RemovalReason::Ended(ENDED)));
    }
    for stage in [ResourceState::Wanted, ResourceState::Made] {
        assert_eq!(
            of(State::Running, 2, stage),
            Decision::Keep(KeepReason::Lives(State::Running)),
            "adopted"
        );
    }
    let fenced = Decision::Remove(RemovalReason::Fenced { made: 1, present: 2 });
    assert_eq!(of(State::Running, 2, ResourceState::Removed), fenced);
}
