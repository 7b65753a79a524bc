//! Tests proposals: their accounts, changes by one process at a time, what is due, and how many are open.

use platform_core::{
    id::{AccountId, ExternalId, ProposalId},
    limit::Millis,
};
use runner_store::{
    AccountScope, MAX_OPEN_PROPOSALS, NewProposal, ProposalAdded, ProposalProgress, Store, StoredProposal,
};

use crate::database::Database;

crate::on_both!(
    a_proposal_exists_for_its_account_alone,
    an_older_change_of_a_proposal_is_refused,
    an_account_has_few_open_proposals,
    old_ended_proposals_are_forgotten,
    a_page_of_proposals_follows_another,
    who_looks_makes_a_proposal_due,
);

/// Time that no test waits for.
const LATER: Millis = Millis::seconds(600);

fn progress(state: &'static str, due_in: Option<Millis>) -> ProposalProgress {
    ProposalProgress { state, document: format!("{{\"state\":\"{state}\"}}"), due_in }
}

pub(crate) fn new(number: u64, account: &str) -> NewProposal {
    NewProposal {
        id: ProposalId::from_random(number),
        account: AccountId::parse(account).unwrap(),
        principal: ExternalId::parse("ann").unwrap(),
        content: "{}".to_owned(),
        progress: progress("queued", Some(Millis(0))),
    }
}

async fn add(store: &Store, new: &NewProposal) -> StoredProposal {
    match store.add_proposal(new).await.unwrap() {
        ProposalAdded::New(stored) => *stored,
        other => panic!("{other:?}"),
    }
}

fn only(account: &str) -> AccountScope {
    AccountScope::Only(AccountId::parse(account).unwrap())
}

async fn a_proposal_exists_for_its_account_alone(database: Database) {
    let store = database.open().await;
    let stored = add(&store, &new(1, "a")).await;
    assert_eq!((stored.state.as_str(), stored.due), ("queued", Some(stored.created)));
    for scope in [AccountScope::All, only("a")] {
        assert_eq!(store.proposal(&stored.id, &scope).await.unwrap(), Some(stored.clone()));
        assert_eq!(store.proposals(&scope, None, 10).await.unwrap(), std::slice::from_ref(&stored));
    }
    assert_eq!(store.proposal(&stored.id, &only("b")).await.unwrap(), None);
    assert_eq!(store.proposals(&only("b"), None, 10).await.unwrap(), []);
    let again = store.add_proposal(&NewProposal { content: "x".to_owned(), ..new(1, "b") }).await.unwrap();
    assert_eq!(again, ProposalAdded::Before(Box::new(stored)), "the first stays as it is");
}

async fn an_older_change_of_a_proposal_is_refused(database: Database) {
    let store = database.open().await;
    let queued = add(&store, &new(1, "a")).await;
    let committed = store.change_proposal(&queued, &progress("committed", Some(LATER))).await.unwrap();
    let committed = committed.unwrap();
    assert_eq!(store.change_proposal(&queued, &progress("failed", None)).await.unwrap(), None);
    assert_eq!(store.proposal(&queued.id, &AccountScope::All).await.unwrap(), Some(committed.clone()));
    // A try is repeated after its answer was lost, and changes nothing.
    let again = store.change_proposal(&queued, &progress("committed", Some(LATER))).await.unwrap();
    assert_eq!(again, Some(committed));
}

async fn an_account_has_few_open_proposals(database: Database) {
    let store = database.open().await;
    for number in 1..=u64::from(MAX_OPEN_PROPOSALS) {
        add(&store, &new(number, "a")).await;
    }
    assert_eq!(store.add_proposal(&new(99, "a")).await.unwrap(), ProposalAdded::TooMany);
    add(&store, &new(98, "b")).await;
    let first = store.proposal(&new(1, "a").id, &AccountScope::All).await.unwrap().unwrap();
    store.change_proposal(&first, &progress("failed", None)).await.unwrap().unwrap();
    add(&store, &new(99, "a")).await;
}

async fn old_ended_proposals_are_forgotten(database: Database) {
    let store = database.open().await;
    let open = add(&store, &new(1, "a")).await;
    for number in 2..=210 {
        let ended = add(&store, &new(number, "a")).await;
        store.change_proposal(&ended, &progress("failed", None)).await.unwrap().unwrap();
    }
    let kept = store.proposals(&only("a"), None, 300).await.unwrap();
    assert_eq!(kept.len(), 202, "the open one, 200 and the one that was added since");
    assert!(kept.contains(&open), "what is open stays");
    assert!(kept.iter().any(|kept| kept.id == new(210, "a").id), "the newest stay");
}

async fn a_page_of_proposals_follows_another(database: Database) {
    let store = database.open().await;
    for number in 1..=5 {
        add(&store, &new(number, "a")).await;
    }
    let all = store.proposals(&only("a"), None, 10).await.unwrap();
    let mut paged = Vec::new();
    while paged.len() < all.len() {
        let place = paged.last().map(|last: &StoredProposal| (last.created, last.id.clone()));
        let page = store.proposals(&only("a"), place.as_ref(), 2).await.unwrap();
        assert!(!page.is_empty(), "{paged:?}");
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

async fn who_looks_makes_a_proposal_due(database: Database) {
    let store = database.open().await;
    let queued = add(&store, &new(1, "a")).await;
    assert_eq!(store.due_proposals(10).await.unwrap(), std::slice::from_ref(&queued.id));
    let waiting = store.change_proposal(&queued, &progress("proposed", Some(LATER))).await.unwrap().unwrap();
    let hurry = async |interval| store.hurry_proposals(std::slice::from_ref(&queued.id), interval).await;
    assert_eq!(store.due_proposals(10).await.unwrap(), []);
    hurry(LATER).await.unwrap();
    assert_eq!(store.due_proposals(10).await.unwrap(), [], "it was looked at within the interval");
    hurry(Millis(0)).await.unwrap();
    assert_eq!(store.due_proposals(10).await.unwrap().len(), 1);
    store.change_proposal(&waiting, &progress("merged", None)).await.unwrap().unwrap();
    hurry(Millis(0)).await.unwrap();
    assert_eq!(store.due_proposals(10).await.unwrap(), [], "it has ended");
}
