//! What waits for a run, and what waited for one.

use super::*;
use crate::store::{PoolStage, Pooled, Spare};

/// Returns what waits for a run.
fn spare(stage: PoolStage) -> Pooled {
    let spare = Spare {
        container: "sluice-here-spare-1".to_owned(),
        mould: "mould".to_owned(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        workspace: WorkspaceId::parse(W1).unwrap(),
        listener: SocketDirName::from_random(OURS),
    };
    Pooled { spare, owner: "here/1/2".to_owned(), stage, over: false, changed: UnixMillis(0) }
}

/// Returns the same of a process that is gone.
fn left(stage: PoolStage) -> Pooled {
    Pooled { over: true, ..spare(stage) }
}

/// A container that waited for a run, as Docker tells of it for good.
fn waited() -> Thing {
    let Thing::Container(mut found) = container(&named(1), 1, OURS) else { unreachable!() };
    found.labels.remove(label::RUN_ID);
    found.labels.remove(label::EPOCH);
    found.labels.insert(label::MOULD.to_owned(), "mould".to_owned());
    Thing::Container(found)
}

#[test]
fn what_waits_goes_when_its_owner_is_gone() {
    use PoolStage::{Gone, Leaving, Ready, Wanted};
    let decide = |pooled: Pooled| decide(&Thing::Spare(pooled), None, Mode::default());
    for stage in [Wanted, Ready, Leaving] {
        assert_eq!(decide(spare(stage)), Decision::Keep(Kept::Waits(stage)));
        assert_eq!(decide(left(stage)), Decision::Remove(Dead::Abandoned));
    }
    assert_eq!(decide(spare(Gone)), Decision::Remove(Dead::Abandoned), "it came late");
}

#[test]
fn what_waited_is_of_the_epoch_in_which_a_run_took_it() {
    let of = |state, epoch, stage| decide(&waited(), run(state, epoch, stage).as_ref(), Mode::default());
    for stage in [Stage::Wanted, Stage::Made, Stage::Removed] {
        assert_eq!(
            of(State::Running, 1, stage),
            Decision::Keep(Kept::Lives(State::Running)),
            "its holder decides"
        );
        assert_eq!(of(ENDED, 1, stage), Decision::Remove(Dead::Ended(ENDED)));
        assert_eq!(of(ENDED, 2, stage), Decision::Remove(Dead::Ended(ENDED)));
    }
    for stage in [Stage::Wanted, Stage::Made] {
        assert_eq!(of(State::Running, 2, stage), Decision::Keep(Kept::Lives(State::Running)), "adopted");
    }
    let fenced = Decision::Remove(Dead::Fenced { made: 1, present: 2 });
    assert_eq!(of(State::Running, 2, Stage::Removed), fenced);
}
