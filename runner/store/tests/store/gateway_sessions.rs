//! Tests the list of sessions of a gateway's agent: what belongs to it, what it cost, and its pages.

use platform_core::{
    id::{AccountId, ExternalId, GatewayAgentId, GatewayId, RunId},
    limit::Millis,
    money::SignedNanoDollars,
};
use runner_model::lifecycle::Transition;
use runner_store::{
    AccountScope, Claimant, Created, GatewayAgentKey, GatewaySession, NewRun, NewTurn, ResourceChange,
    ResourceKind, SessionThread, Step, Store, TurnPlace, Worker,
};

use crate::{
    calls,
    database::{Database, id, open, order, transitions},
};

crate::on_both!(
    sessions_are_listed_with_their_cost,
    sessions_come_in_pages,
    turns_of_a_session_come_in_pages,
    active_runs_of_a_session_are_found,
    runs_of_older_schemas_have_sessions,
);

const CHAT: &str = "g/agent:bot:accta:kschat";

fn bot() -> GatewayAgentKey {
    GatewayAgentKey { gateway: GatewayId::parse("g").unwrap(), agent: GatewayAgentId::parse("bot").unwrap() }
}

/// Takes a turn of `session` with a run. Runs of one millisecond are listed by their ids.
async fn turn(store: &Store, new: NewRun, session: &str) {
    let me = Worker::named("host/1/00000001");
    let created = store.create(&new, Claimant::Worker(&me, Millis::seconds(60))).await.unwrap();
    let Created::New(run) = created else { panic!("{created:?}") };
    let session = ResourceChange::wanted(ResourceKind::Session, session);
    for transition in transitions() {
        let session = (transition == Transition::Prepare).then(|| session.clone());
        store.step(&run.fencing_token(), &Step::from(transition).with(session)).await.unwrap();
    }
}

fn of_thread(run: &str) -> NewRun {
    let turn = NewTurn {
        thread: ExternalId::parse("chat").unwrap(),
        question: format!("what is {run}?"),
        question_id: None,
        place: TurnPlace::Last,
    };
    NewRun { turn: Some(turn), ..order(run) }
}

fn of_account(run: &str, account: &str) -> NewRun {
    NewRun { account: AccountId::parse(account).unwrap(), ..order(run) }
}

async fn listed(store: &Store, account: Option<&str>) -> Vec<GatewaySession> {
    let only = |account| AccountScope::Only(AccountId::parse(account).unwrap());
    let scope = account.map_or(AccountScope::All, only);
    store.gateway_sessions(&bot(), &scope, None, 10).await.unwrap()
}

async fn sessions_are_listed_with_their_cost(database: Database) {
    let store = database.open().await;
    turn(&store, of_thread("r1"), CHAT).await;
    turn(&store, of_account("r2", "acct-2"), "g/agent:bot:acctb:krr2").await;
    turn(&store, of_thread("r3"), CHAT).await;
    turn(&store, order("r4"), "g/agent:bot2:accta:krr4").await;
    turn(&store, order("r5"), "h/agent:bot:accta:krr5").await;
    let priced = [calls::call("r1", 1), calls::call("r1", 2), calls::call("r3", 3), calls::call("r4", 4)];
    store.record_calls(&priced, &calls::cursor(4)).await.unwrap();

    let all = listed(&store, None).await;
    let [chat, lone] = &*all else { panic!("{all:?}") };
    assert_eq!((chat.name.as_str(), chat.runs, chat.cost), (&CHAT[2..], 2, SignedNanoDollars(3 * 23_000)));
    assert_eq!((chat.last_run.as_str(), chat.state.name()), ("r3", "succeeded"));
    assert_eq!(chat.thread.as_ref().map(ExternalId::as_str), Some("chat"));
    assert_eq!(chat.question.as_deref(), Some("what is r3?"));
    assert!(chat.began <= chat.changed, "{chat:?}");
    assert_eq!((lone.last_run.as_str(), lone.runs, lone.cost), ("r2", 1, SignedNanoDollars(0)));
    assert_eq!(lone.thread, None);
    assert_eq!(listed(&store, Some("acct-2")).await, all[1..]);
    assert_eq!(listed(&store, Some("acct-3")).await, []);
    let has = async |account: &str, name: &str| {
        let scope = AccountScope::Only(AccountId::parse(account).unwrap());
        store.has_gateway_session(&bot(), &scope, name).await.unwrap()
    };
    assert!(has("acct-1", &CHAT[2..]).await);
    assert!(!has("acct-2", &CHAT[2..]).await, "it is of another account");
    assert!(!has("acct-1", "agent:bot2:accta:krr4").await, "it is of another agent");
    assert!(!has("acct-1", "agent:bot:accta:knone").await);
}

async fn sessions_come_in_pages(database: Database) {
    let store = database.open().await;
    for run in ["r1", "r2", "r3"] {
        turn(&store, order(run), &format!("g/agent:bot:accta:kr{run}")).await;
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = store.gateway_sessions(&bot(), &AccountScope::All, before.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some((last.changed, last.name.clone()));
        seen.extend(page.into_iter().map(|session| session.last_run));
    }
    assert_eq!(seen, [id("r3"), id("r2"), id("r1")]);
}

/// Returns an order of the thread `chat` at the session that all gateways with an agent `bot` name alike.
fn of_session(run: &str) -> NewRun {
    NewRun { session: Some(CHAT[2..].to_owned()), ..of_thread(run) }
}

fn session<'t>(agent: &'t GatewayAgentKey, new: &'t NewRun) -> SessionThread<'t> {
    let thread = &new.turn.as_ref().unwrap().thread;
    SessionThread { agent, account: &new.account, thread, session: &CHAT[2..] }
}

async fn turns_of_a_session_come_in_pages(database: Database) {
    let store = database.open().await;
    for run in ["r1", "r2", "r3"] {
        turn(&store, of_session(run), CHAT).await;
    }
    turn(&store, of_session("r4"), "h/agent:bot:accta:kschat").await;
    turn(&store, of_thread("r5"), "g/agent:bot2:accta:kschat").await;
    store.create(&of_session("r6"), Claimant::AnyWorker).await.unwrap();
    let bot = bot();
    let any = of_session("r1");
    let mut seen = Vec::new();
    for expected in [&["r6", "r3"][..], &["r2", "r1"], &[]] {
        let page = store.session_turns(session(&bot, &any), seen.last(), 2).await.unwrap();
        let runs: Vec<RunId> = page.into_iter().map(|turn| turn.run.run_id).collect();
        assert_eq!(runs, expected.iter().copied().map(id).collect::<Vec<_>>());
        seen.extend(runs);
    }
}

async fn active_runs_of_a_session_are_found(database: Database) {
    let store = database.open().await;
    turn(&store, of_session("r1"), CHAT).await;
    for run in ["r9", "r2", "r3"] {
        store.create(&of_session(run), Claimant::AnyWorker).await.unwrap();
    }
    store.create(&of_thread("r4"), Claimant::AnyWorker).await.unwrap();
    let bot = bot();
    let any = of_session("r1");
    let active = async |most| {
        let runs = store.active_session_runs(session(&bot, &any), most).await.unwrap();
        runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>()
    };
    assert_eq!(active(9).await, [id("r9"), id("r2"), id("r3")], "in the order of their turns");
    assert_eq!(active(1).await, [id("r9")]);
}

async fn runs_of_older_schemas_have_sessions(database: Database) {
    let store = database.open().await;
    turn(&store, order("r1"), CHAT).await;
    let before = listed(&store, None).await;
    store.close().await;
    database
        .behind_its_back(
            "DROP TABLE proposals; DROP INDEX runs_of_gateway_agent; DROP INDEX resources_sessions; \
             ALTER TABLE runs DROP COLUMN gateway_agent; DELETE FROM migrations WHERE version >= 28",
        )
        .await;
    let migrated = open(&database.address()).await.unwrap();
    assert_eq!((before.len(), listed(&migrated, None).await), (1, before));
}
