//! Tests orders, steps, resources, events, lists and cursors.

use std::time::Duration;

use platform_core::{
    control::{Cursor, Usage},
    event::{AgentEvent, OutputStream, Phase, RunErrorCode},
    id::{AccountId, AgentId},
    limit::Millis,
    priority::Priority,
    record::Tokens,
};
use runner_model::lifecycle::{Completion, Failure, Outcome, State, Transition};
use runner_store::{
    Batch, Claimant, Created, Error, Event, EventCursor, FencingToken, Filter, NewRun, ResourceChange,
    ResourceKind, ResourceState, Step, Store, Worker,
};

use crate::database::{Database, cancelled, eventually, id, order, transitions};

const LONG: Millis = Millis::seconds(600);

crate::on_both!(
    a_run_is_ordered_once,
    a_run_records_its_states_as_events,
    a_refused_transition_changes_nothing,
    a_resource_has_a_row_before_it_exists,
    anyone_may_remove_resources_of_an_ended_run,
    events_are_numbered_and_stored_once,
    events_are_read_in_pages_and_bounded,
    the_reason_to_end_an_agent_is_stored,
    any_text_comes_back,
    a_binary_answer_is_bounded_as_stored,
    runs_are_listed_in_pages,
    a_run_is_found_by_a_part_of_its_id,
    an_ended_run_may_be_restarted,
    a_cursor_never_goes_back,
    runs_of_other_installations_are_hidden,
);

/// Orders a run for this process.
pub(crate) async fn ordered(store: &Store, run: &str) -> FencingToken {
    match store.create(&order(run), Claimant::Worker(&Worker::this_process(), LONG)).await.unwrap() {
        Created::New(run) => run.fencing_token(),
        Created::Existing(run) => panic!("{run:?}"),
    }
}

async fn a_run_is_ordered_once(database: Database) {
    let store = database.open().await;
    let clients = [database.open().await, database.open().await, database.open().await];
    let new = order("r1");
    let order_it = async |client: &Store| client.create(&new, Claimant::AnyWorker).await.unwrap();
    let (a, b, c) = tokio::join!(order_it(&clients[0]), order_it(&clients[1]), order_it(&clients[2]));
    let all = [a, b, c];
    let first = all.iter().filter(|created| matches!(created, Created::New(_))).count();
    assert_eq!(first, 1, "{all:?}");
    let Created::Existing(again) = store.create(&new, Claimant::AnyWorker).await.unwrap() else {
        panic!("ordered twice")
    };
    assert_eq!((again.state, again.attempt, again.epoch), (State::Queued, 0, 0));
    let others = [
        NewRun { wanted: "{}".to_owned(), ..new.clone() },
        NewRun { account: AccountId::parse("acct-2").unwrap(), ..new.clone() },
        NewRun { agent: AgentId::parse("sandbox:other").unwrap(), ..new.clone() },
        NewRun { priority: Priority::High, ..new.clone() },
    ];
    for other in others {
        let refused = store.create(&other, Claimant::AnyWorker).await.unwrap_err();
        assert!(matches!(&refused, Error::Conflict { run_id } if *run_id == id("r1")), "{refused:?}");
    }
}

async fn a_run_records_its_states_as_events(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    let mut seen = Vec::new();
    for transition in transitions() {
        seen.push(store.step(&token, &transition.into()).await.unwrap().state.name());
    }
    assert_eq!(seen, ["preparing", "starting", "running", "settling", "succeeded"]);
    let record = store.record(&token.run_id).await.unwrap();
    assert_eq!(record.run.state, State::Ended(Outcome::Succeeded));
    assert_eq!((record.run.exit_code, record.run.usage), (Some(0), Some(Usage::default())));
    assert_eq!((record.answer.as_deref(), record.run.lease), (Some("answer"), None));
    assert!(record.run.created <= record.run.started.unwrap() && record.run.started <= record.run.ended);
    let events = store.events_after(&token.run_id, 0).await.unwrap().1;
    let phase = |phase| AgentEvent::Status { phase };
    let expected = [
        phase(Phase::Preparing),
        phase(Phase::Starting),
        phase(Phase::Running),
        phase(Phase::Settling),
        AgentEvent::AssistantFinal { content: "answer".to_owned(), cut_bytes: 0 },
        AgentEvent::UsageReport { calls: 0, tokens: Tokens::default() },
        AgentEvent::Done,
    ];
    let (seqs, events): (Vec<_>, Vec<_>) =
        events.iter().map(|event| (event.seq, event.event().unwrap())).unzip();
    assert_eq!((seqs, events.as_slice()), ((1..=7).collect(), &expected[..]));

    let token = ordered(&store, "r2").await;
    let run = store.step(&token, &Transition::Withdraw(cancelled()).into()).await.unwrap();
    assert_eq!((run.state, run.error), (State::Ended(Outcome::Cancelled), Some(cancelled())));
}

async fn a_refused_transition_changes_nothing(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    for (done, step) in transitions().into_iter().enumerate() {
        let before = store.history(&token.run_id).await.unwrap();
        for (other, wrong) in transitions().into_iter().enumerate().filter(|(other, _)| *other != done) {
            // Settling is allowed from three states.
            if other == 3 && (1..=3).contains(&done) {
                continue;
            }
            let refused = store.step(&token, &wrong.into()).await.unwrap_err();
            assert!(matches!(refused, Error::Illegal { .. }), "{refused:?}");
        }
        let after = store.history(&token.run_id).await.unwrap();
        assert_eq!((before.record.run, before.events), (after.record.run, after.events));
        store.step(&token, &step.into()).await.unwrap();
    }
    let unknown = FencingToken { run_id: id("r9"), epoch: 1 };
    assert!(matches!(
        store.step(&unknown, &Transition::Prepare.into()).await.unwrap_err(),
        Error::Unknown { .. }
    ));
}

async fn a_resource_has_a_row_before_it_exists(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    let container = ResourceChange::wanted(ResourceKind::Container, "c1");
    let early = store.step(&token, &container.clone().into()).await.unwrap_err();
    assert!(matches!(early, Error::NotMaking { state: State::Queued, .. }), "{early:?}");
    let unrecorded =
        store.step(&token, &Step::from(Transition::Prepare).with([container.to(ResourceState::Made)])).await;
    assert!(matches!(unrecorded.unwrap_err(), Error::NotWanted { kind: "container", .. }));
    assert_eq!(store.record(&token.run_id).await.unwrap().run.state, State::Queued, "the move went with it");

    let workspace = ResourceChange::wanted(ResourceKind::Workspace, "/w/r1");
    let step = Step::from(Transition::Prepare).with([container.clone(), workspace.clone()]);
    store.step(&token, &step).await.unwrap();
    store.step(&token, &container.to(ResourceState::Made).into()).await.unwrap();
    let left: Vec<_> = store
        .unremoved_resources()
        .await
        .unwrap()
        .into_iter()
        .map(|resource| (resource.kind, resource.stage))
        .collect();
    assert!(
        left.contains(&(ResourceKind::Container, ResourceState::Made))
            && left.contains(&(ResourceKind::Workspace, ResourceState::Wanted))
    );

    let completion = Completion::without_agent(cancelled());
    store.step(&token, &Transition::Settle(completion).into()).await.unwrap();
    let late =
        store.step(&token, &ResourceChange::wanted(ResourceKind::Volume, "v1").into()).await.unwrap_err();
    assert!(matches!(late, Error::NotMaking { .. }), "{late:?}");
    let gone = [container.to(ResourceState::Removed), workspace.to(ResourceState::Removed)];
    store.step(&token, &Step::from(Transition::Finish(Some(Usage::default()))).with(gone)).await.unwrap();
    assert_eq!(store.unremoved_resources().await.unwrap(), vec![]);
    let resources = store.record(&token.run_id).await.unwrap().resources;
    assert!(
        resources.len() == 2
            && resources.iter().all(|resource| resource.epoch == 1 && !resource.owner.is_empty())
    );
}

async fn anyone_may_remove_resources_of_an_ended_run(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    let container = ResourceChange::wanted(ResourceKind::Container, "c1");
    store.step(&token, &Step::from(Transition::Prepare).with([container.clone()])).await.unwrap();
    let made = async || store.run_with_resources(&token.run_id).await.unwrap().1.remove(0);
    let (first, refused) = (made().await, async |resource| {
        matches!(store.mark_removed(resource).await, Err(Error::NotOver { kind: "container", .. }))
    });
    assert!(refused(&first).await, "its holder is there");
    for step in [
        Transition::Settle(Completion::without_agent(cancelled())),
        Transition::Finish(Some(Usage::default())),
    ] {
        store.step(&token, &step.into()).await.unwrap();
    }
    assert_eq!(
        store.resources_named(ResourceKind::Container, "c1").await.unwrap(),
        store.unremoved_resources().await.unwrap()
    );
    store.restart(&token).await.unwrap();
    let restarted = store.claim(&Worker::this_process(), LONG).await.unwrap().unwrap().fencing_token();
    store.step(&restarted, &Step::from(Transition::Prepare).with([container])).await.unwrap();
    for step in [
        Transition::Settle(Completion::without_agent(cancelled())),
        Transition::Finish(Some(Usage::default())),
    ] {
        store.step(&restarted, &step.into()).await.unwrap();
    }
    assert!(refused(&first).await, "it was wanted again since");
    let second = made().await;
    store.mark_removed(&second).await.unwrap();
    store.mark_removed(&second).await.unwrap();
    assert_eq!(
        (made().await.stage, store.unremoved_resources().await.unwrap()),
        (ResourceState::Removed, vec![])
    );
    assert_eq!(
        store.resources_named(ResourceKind::Container, "c1").await.unwrap().len(),
        1,
        "it is known for good"
    );
    assert_eq!(store.resources_named(ResourceKind::Workspace, "c1").await.unwrap(), vec![]);
    assert!(matches!(store.run_with_resources(&id("r9")).await, Err(Error::Unknown { .. })));
}

/// Returns a batch of logs.
fn batch(number: u64, texts: &[&str], bytes: u64) -> Batch {
    let log = |text: &&str| AgentEvent::Log { stream: OutputStream::Stdout, text: (*text).to_owned() };
    let mut cursor = EventCursor::default();
    cursor.stdout.bytes = bytes;
    Batch { number, events: texts.iter().map(log).collect(), cursor }
}

async fn events_are_numbered_and_stored_once(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    store.step(&token, &Transition::Prepare.into()).await.unwrap();
    let first = batch(1, &["a", "b"], 2);
    store.record_events(&token, &first).await.unwrap();
    store.record_events(&token, &first).await.unwrap();
    store.record_events(&token, &batch(2, &["c"], 3)).await.unwrap();
    assert_eq!(
        store.record(&token.run_id).await.unwrap().event_cursor.stdout.bytes,
        3,
        "the next holder continues there"
    );

    // A worker that takes the run over numbers its batches from 1 again. The former holder records nothing more.
    store.renew(&token, Millis(0)).await.unwrap();
    let next = eventually("it is taken over", async || {
        store.take_over(&Worker::named("other"), LONG, &[]).await.unwrap()
    });
    let next = next.await.fencing_token();
    let late = store.record_events(&token, &batch(3, &["late"], 7)).await.unwrap_err();
    assert!(matches!(late, Error::Fenced { .. }), "{late:?}");
    store.record_events(&next, &batch(1, &["d"], 4)).await.unwrap();
    let last = [batch(1, &["d"], 4), batch(2, &["e"], 5)];
    let settle = Step::from(Transition::Settle(Completion::without_agent(cancelled()))).after(last);
    store.step(&next, &settle).await.unwrap();
    store.step(&next, &Transition::Finish(None).into()).await.unwrap();
    let texts_after = async |after| {
        let (_, events) = store.events_after(&token.run_id, after).await.unwrap();
        let text_of = |event: Event| match event.event().unwrap() {
            AgentEvent::Log { text, .. } => (event.seq, text),
            other => (event.seq, other.kind().to_owned()),
        };
        events.into_iter().map(text_of).collect::<Vec<_>>()
    };
    let all = ["status", "a", "b", "c", "d", "e", "status", "error"];
    let all: Vec<_> = (1..).zip(all.map(str::to_owned)).collect();
    assert_eq!(texts_after(0).await, all);
    assert_eq!(texts_after(5).await, all[5..]);
    assert_eq!(texts_after(99).await, []);
    assert!(matches!(store.events_after(&id("r9"), 0).await, Err(Error::Unknown { .. })));
    let kinds: Vec<_> =
        store.history(&token.run_id).await.unwrap().events.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["status", "status", "error"], "a record has no logs");
}

async fn events_are_read_in_pages_and_bounded(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    store.record_events(&token, &batch(1, &["x"; 40], 40)).await.unwrap();
    let page = store.events_after(&token.run_id, 0).await.unwrap().1;
    assert_eq!((page.len(), page[31].seq), (32, 32));
    assert_eq!(store.events_after(&token.run_id, 32).await.unwrap().1.len(), 8);
    let huge = "x".repeat(70_000);
    let refused = store.record_events(&token, &batch(2, &["small", &huge], 1)).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge { .. }), "{refused:?}");
    assert_eq!(store.events_after(&token.run_id, 32).await.unwrap().1.len(), 8, "nothing of it is kept");
}

async fn the_reason_to_end_an_agent_is_stored(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    store.record_stopping(&token, "\"timeout\"").await.unwrap();
    assert_eq!(store.record(&token.run_id).await.unwrap().stopping.as_deref(), Some("\"timeout\""));
}

async fn any_text_comes_back(database: Database) {
    let store = database.open().await;
    let texts = ["", "'; DROP TABLE runs; --", "\u{1b}[2J$1 ?1 :a", "žluť 🦀 \u{feff}\u{202e}", "a\0b"];
    for (n, text) in texts.into_iter().enumerate() {
        let mut new = order(&format!("r{n}"));
        new.wanted = serde_json::json!({ "text": text }).to_string();
        let me = Claimant::Worker(&Worker::this_process(), LONG);
        let Created::New(run) = store.create(&new, me).await.unwrap() else { panic!("not new") };
        let token = run.fencing_token();
        let completion = Completion { exit_code: None, oom_seen: None, answer: Ok(text.to_owned()) };
        for step in [Transition::Prepare, Transition::Settle(completion)] {
            store.step(&token, &step.into()).await.unwrap();
        }
        let record = store.record(&token.run_id).await.unwrap();
        assert_eq!(record.wanted, new.wanted);
        assert_eq!(record.answer.unwrap(), text.replace('\0', "\u{fffd}"), "no database need hold a zero");
    }
    let token = ordered(&store, "large").await;
    let answer = Ok("€".repeat(200_000));
    for step in
        [Transition::Prepare, Transition::Settle(Completion { exit_code: None, oom_seen: None, answer })]
    {
        store.step(&token, &step.into()).await.unwrap();
    }
    let record = store.record(&token.run_id).await.unwrap();
    assert_eq!((record.answer_bytes, record.answer.unwrap().len()), (Some(600_000), 262_143));
    store.step(&token, &Transition::Finish(None).into()).await.unwrap();
    let answer = store.events_after(&token.run_id, 2).await.unwrap().1.remove(0).event().unwrap();
    let AgentEvent::AssistantFinal { content, cut_bytes } = answer else { panic!("{answer:?}") };
    assert_eq!((content.len(), cut_bytes), (262_143, 337_857));
}

/// Stored text, counted bytes and recorded events agree, even if no column can hold the original answer.
async fn a_binary_answer_is_bounded_as_stored(database: Database) {
    let store = database.open().await;
    for (run, letter, whole, kept) in [
        ("zeros", "\0", 900_000, 262_143),
        ("controls", "\u{1}", 300_000, (512 << 10) / 6),
        ("quotes", "\"", 262_144, 262_144),
    ] {
        let token = ordered(&store, run).await;
        let answer = Ok(letter.repeat(300_000.min(whole)));
        for step in
            [Transition::Prepare, Transition::Settle(Completion { exit_code: None, oom_seen: None, answer })]
        {
            store.step(&token, &step.into()).await.unwrap();
        }
        store.step(&token, &Transition::Finish(None).into()).await.unwrap();
        let record = store.record(&token.run_id).await.unwrap();
        let found = (record.answer_bytes.unwrap(), record.answer.unwrap().len());
        assert_eq!(found, (whole as i64, kept), "{run}");
        let event = store.events_after(&token.run_id, 2).await.unwrap().1.remove(0);
        assert!(event.payload.len() < (512 << 10) + 100, "{run}: {}", event.payload.len());
        let AgentEvent::AssistantFinal { content, cut_bytes } = event.event().unwrap() else {
            panic!("{run}")
        };
        assert_eq!(content.len() as u64 + cut_bytes, whole as u64, "{run}");
    }
}

async fn runs_are_listed_in_pages(database: Database) {
    let store = database.open().await;
    for n in 0..7 {
        let mut new = order(&format!("r{n}"));
        new.account = AccountId::parse(["even", "odd"][n % 2]).unwrap();
        store.create(&new, Claimant::AnyWorker).await.unwrap();
    }
    // Runs of one millisecond are listed by their ids.
    tokio::time::sleep(Duration::from_millis(2)).await;
    let token = ordered(&store, "mine").await;
    store.step(&token, &Transition::Prepare.into()).await.unwrap();
    let mut seen = Vec::new();
    let mut filter = Filter::default();
    loop {
        let page = store.list(&filter, 3).await.unwrap();
        seen.extend(page.runs.iter().map(|run| run.run_id.to_string()));
        assert!(page.runs.len() <= 3);
        let Some(next) = page.next else { break };
        filter.before = Some(next);
    }
    assert_eq!(seen[0], "mine", "the newest first");
    let mut all = seen.clone();
    all.sort();
    assert_eq!(all, ["mine", "r0", "r1", "r2", "r3", "r4", "r5", "r6"], "each once: {seen:?}");
    let found = async |filter: Filter| store.list(&filter, 100).await.unwrap().runs.len();
    let account = AccountId::parse("odd").ok();
    let left_out = account.clone();
    assert_eq!(found(Filter { account, ..Filter::default() }).await, 3);
    assert_eq!(found(Filter { left_out, ..Filter::default() }).await, 5);
    assert_eq!(found(Filter { states: vec!["preparing"], ..Filter::default() }).await, 1);
    assert_eq!(found(Filter { states: vec!["queued", "preparing"], ..Filter::default() }).await, 8);
    assert_eq!(found(Filter { agent: AgentId::parse("a:b").ok(), ..Filter::default() }).await, 0);
    assert_eq!(found(Filter { id_prefix: Some(id("r")), ..Filter::default() }).await, 7);
    assert_eq!(
        found(Filter { id_prefix: Some(id("ine")), ..Filter::default() }).await,
        0,
        "the beginning alone"
    );
}

async fn a_run_is_found_by_a_part_of_its_id(database: Database) {
    let store = database.open().await;
    for run in ["run-1a20-9f446d19", "run-1a21-2364b5f2", "nightly", "nightly-2"] {
        store.create(&order(run), Claimant::AnyWorker).await.unwrap();
    }
    let found = async |part| {
        let mut found = store.find_by_part(&id(part), 8).await.unwrap();
        found.sort();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("6d19").await, "run-1a20-9f446d19", "the end");
    assert_eq!(found("run-1a21").await, "run-1a21-2364b5f2", "the beginning");
    assert_eq!(found("run-1a2").await, "run-1a20-9f446d19 run-1a21-2364b5f2");
    assert_eq!(found("nightly").await, "nightly", "a whole id, though another one begins with it");
    assert_eq!(found("446d").await, "", "no part in the middle");
    assert_eq!(store.find_by_part(&id("run-1a2"), 1).await.unwrap().len(), 1);
}

async fn an_ended_run_may_be_restarted(database: Database) {
    let store = database.open().await;
    let token = ordered(&store, "r1").await;
    assert!(matches!(store.restart(&token).await.unwrap_err(), Error::Illegal { .. }));
    let code = RunErrorCode::Timeout;
    let failure = Failure::new(code, "stopped after 2m");
    let completion = Completion { exit_code: Some(137), oom_seen: Some(true), answer: Err(failure) };
    for step in
        [Transition::Prepare, Transition::Settle(completion), Transition::Finish(Some(Usage::default()))]
    {
        store.step(&token, &step.into()).await.unwrap();
    }
    assert_eq!(store.record(&token.run_id).await.unwrap().run.state, State::Ended(Outcome::TimedOut));
    let restarted = store.restart(&token).await.unwrap();
    assert_eq!((restarted.state, restarted.attempt, restarted.epoch), (State::Queued, 1, 1));
    assert_eq!((restarted.error, restarted.exit_code, restarted.ended), (None, None, None));
    let claimed = store.claim(&Worker::this_process(), LONG).await.unwrap().unwrap();
    assert_eq!(
        (claimed.attempt, claimed.epoch),
        (1, 2),
        "the epoch goes on, so that the first hold is fenced"
    );
    assert!(matches!(store.renew(&token, LONG).await.unwrap_err(), Error::Fenced { .. }));
}

async fn a_cursor_never_goes_back(database: Database) {
    let store = database.open().await;
    assert_eq!(store.cursors("receipts").await.unwrap(), vec![]);
    let at = |journal: &str, seq| Cursor { journal: journal.to_owned(), seq, hash: format!("hash-{seq}") };
    for cursor in [at("j1", 5), at("j1", 9), at("j1", 9), at("j2", 2)] {
        store.acknowledge("receipts", &cursor).await.unwrap();
    }
    store.acknowledge("grafana", &at("j1", 1)).await.unwrap();
    let back = store.acknowledge("receipts", &at("j1", 8)).await.unwrap_err();
    assert!(matches!(back, Error::Backwards { acknowledged: 9, given: 8, .. }), "{back:?}");
    let mut cursors: Vec<_> =
        store.cursors("receipts").await.unwrap().into_iter().map(|known| known.cursor).collect();
    cursors.sort_by(|one, other| one.journal.cmp(&other.journal));
    assert_eq!(cursors, [at("j1", 9), at("j2", 2)]);
}

async fn runs_of_other_installations_are_hidden(database: Database) {
    let store = database.open().await;
    let other = database.open_of("there").await;
    let token = ordered(&store, "r1").await;
    store.create(&order("r2"), Claimant::AnyWorker).await.unwrap();
    assert!(other.list(&Filter::default(), 10).await.unwrap().runs.is_empty());
    assert!(other.claim(&Worker::this_process(), LONG).await.unwrap().is_none());
    assert!(matches!(
        other.step(&token, &Transition::Prepare.into()).await.unwrap_err(),
        Error::Unknown { .. }
    ));
    let taken = other.create(&order("r1"), Claimant::AnyWorker).await.unwrap_err();
    assert!(matches!(taken, Error::Conflict { .. }), "ids are one space: {taken:?}");
}
