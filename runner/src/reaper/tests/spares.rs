//! What waits for a run, and what waited for one.

use super::{super::evidence::Sight, *};
use crate::store::{PoolStage, Pooled, Spare};

/// What waits for a run, made by somebody on `host`.
fn spare(host: &str, stage: PoolStage) -> Pooled {
    let spare = Spare {
        container: "sluice-here-spare-1".to_owned(),
        mould: "mould".to_owned(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        workspace: WorkspaceId::parse(W1).unwrap(),
        listener: SocketDirName::from_random(OURS),
    };
    Pooled { spare, owner: format!("{host}/1/2"), stage, over: false, changed: UnixMillis(0) }
}

/// The same of somebody who is gone.
fn left(host: &str, stage: PoolStage) -> Pooled {
    Pooled { over: true, ..spare(host, stage) }
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
fn what_waits_goes_when_its_owner_is_gone_and_only_where_it_is() {
    use PoolStage::{Gone, Leaving, Ready, Wanted};
    let decide = |pooled: Pooled, sight| decide(&Thing::Spare(pooled, sight), None, Mode::default());
    for stage in [Wanted, Ready, Leaving] {
        for sight in [Sight::Seen, Sight::Unseen] {
            assert_eq!(decide(spare(HERE, stage), sight), Decision::Keep(Kept::Waits(stage)));
            assert_eq!(decide(left(HERE, stage), sight), Decision::Remove(Dead::Abandoned));
        }
        let there = Decision::Keep(Kept::Elsewhere("there".to_owned()));
        assert_eq!(decide(left("there", stage), Sight::Unseen), there);
        assert_eq!(decide(left("there", stage), Sight::Seen), Decision::Remove(Dead::Abandoned), "renamed");
        assert_eq!(decide(spare("there", stage), Sight::Seen), Decision::Keep(Kept::Waits(stage)));
    }
    assert_eq!(decide(spare(HERE, Gone), Sight::Seen), Decision::Remove(Dead::Abandoned), "it came late");
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
