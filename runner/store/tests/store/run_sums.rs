//! Tests the sums of ended runs: they equal the runs that they sum up, also after one was started again.

use platform_core::{event::RunErrorCode, limit::Millis};
use runner_model::lifecycle::{Failure, Transition};
use runner_store::{
    AccountScope, Claimant, FencingToken, NewRun, Onto, RunWaits, RunsEnded, Store, SumSpan, TimeGrid,
    UnixMillis, Worker,
};

use crate::{
    database::{Database, id, order, transitions},
    overview::{account, golden},
};

crate::on_both!(
    ended_runs_count_by_outcome_and_wait,
    a_run_started_again_counts_when_it_ends_again,
    ended_runs_of_older_schemas_are_summed_up,
);

const LEASE: Millis = Millis::seconds(60);

fn failed(code: RunErrorCode) -> Vec<Transition> {
    vec![Transition::Withdraw(Failure::new(code, "so"))]
}

/// Ends a run that has its own account and waited for `wait` milliseconds.
async fn end(database: &Database, run: &str, wait: i64, steps: Vec<Transition>) -> FencingToken {
    let store = database.open().await;
    let new = NewRun { account: account(&format!("acct-{run}")), ..order(run) };
    store.create(&new, Claimant::AnyWorker).await.unwrap();
    again(database, run, wait, steps).await
}

/// Claims the run that waits, and ends it.
async fn again(database: &Database, run: &str, wait: i64, steps: Vec<Transition>) -> FencingToken {
    let store = database.open().await;
    let token = store.claim(&Worker::named("host/1/00000001"), LEASE).await.unwrap().unwrap().fencing_token();
    database.behind_its_back(&format!("UPDATE runs SET queued = claimed - {wait} WHERE run = '{run}'")).await;
    for step in steps {
        store.step(&token, &step.into()).await.unwrap();
    }
    token
}

/// Returns two of each span up to now, so that a test at midnight sees its runs.
async fn grids(store: &Store) -> Vec<TimeGrid> {
    let mut grids = Vec::new();
    for span in SumSpan::ALL {
        grids.push(store.grid_up_to_now(span, 2).await.unwrap());
    }
    grids
}

/// Returns how the runs `runs` ended, as their rows say.
async fn expected(store: &Store, grid: &TimeGrid, runs: &[&str]) -> Vec<RunsEnded> {
    let mut ends = Vec::new();
    for run in runs {
        let run = store.record(&id(run)).await.unwrap().run;
        let ended = RunsEnded {
            began: grid.span.begin_of(run.ended.unwrap()),
            state: run.state.name().to_owned(),
            code: run.error.map(|failure| failure.code.code().to_owned()),
            runs: 1,
        };
        ends.push(ended);
    }
    ends
}

async fn ended_runs_count_by_outcome_and_wait(database: Database) {
    let store = database.open().await;
    end(&database, "stopped", 900_000, failed(RunErrorCode::Cancelled)).await;
    end(&database, "lost", 1_000, failed(RunErrorCode::ContainerFailed)).await;
    end(&database, "ok", 999, transitions().to_vec()).await;
    store.create(&order("waits"), Claimant::AnyWorker).await.unwrap();
    for grid in grids(&store).await {
        let mut all = expected(&store, &grid, &["stopped", "lost", "ok"]).await;
        all.sort_by_key(|ended| ended.began);
        assert_eq!(store.runs_ended(&grid, &AccountScope::All).await.unwrap(), all);
        let waits = store.run_waits(&grid, &AccountScope::All).await.unwrap();
        assert_eq!(waits, RunWaits { runs: [1, 1, 0, 0, 0, 1], longest: 900_000 });
        let own = AccountScope::Only(account("acct-lost"));
        let lost = expected(&store, &grid, &["lost"]).await;
        assert_eq!(store.runs_ended(&grid, &own).await.unwrap(), lost);
        let waits = store.run_waits(&grid, &own).await.unwrap();
        assert_eq!(waits, RunWaits { runs: [0, 1, 0, 0, 0, 0], longest: 1_000 });
    }
    assert!(store.record(&id("waits")).await.unwrap().run.ended.is_none(), "a run that waits has no outcome");
}

async fn a_run_started_again_counts_when_it_ends_again(database: Database) {
    let store = database.open().await;
    let waits = async || {
        let mut found = Vec::new();
        for grid in grids(&store).await {
            found.push(store.run_waits(&grid, &AccountScope::All).await.unwrap());
        }
        found
    };
    end(&database, "short", 10, failed(RunErrorCode::Cancelled)).await;
    let token = end(&database, "long", 40_000, failed(RunErrorCode::Cancelled)).await;
    let both = RunWaits { runs: [1, 0, 0, 1, 0, 0], longest: 40_000 };
    assert_eq!(waits().await, [both; 3], "control");
    store.restart(&token).await.unwrap();
    let one = RunWaits { runs: [1, 0, 0, 0, 0, 0], longest: 10 };
    assert_eq!(waits().await, [one; 3]);
    for grid in grids(&store).await {
        let others = store.runs_ended(&grid, &AccountScope::All).await.unwrap();
        assert_eq!(others, expected(&store, &grid, &["short"]).await);
    }
    again(&database, "long", 2_000, transitions().to_vec()).await;
    assert_eq!(waits().await, [RunWaits { runs: [1, 1, 0, 0, 0, 0], longest: 2_000 }; 3]);
}

/// Sums of runs that end now equal those that the migration makes of the same rows.
async fn ended_runs_of_older_schemas_are_summed_up(database: Database) {
    let store = database.open().await;
    let since = TimeGrid { span: SumSpan::Day, from: UnixMillis(0), spans: 40_000 };
    for schema in [23, 25] {
        store.restore(&golden(schema), Onto::Anything).await.unwrap();
        let ended = store.runs_ended(&since, &AccountScope::All).await.unwrap();
        let waits = store.run_waits(&since, &AccountScope::All).await.unwrap();
        let rows = database.count("SELECT COUNT(*) FROM runs WHERE ended IS NOT NULL").await;
        assert!(rows > 0, "control: {schema}");
        assert_eq!(ended.iter().map(|ended| ended.runs).sum::<u64>(), rows.cast_unsigned(), "{schema}");
        let waited =
            database.count("SELECT COUNT(*) FROM runs WHERE ended IS NOT NULL AND claimed IS NOT NULL").await;
        assert_eq!(waits.runs.into_iter().sum::<u64>(), waited.cast_unsigned(), "{schema}");
    }
}
