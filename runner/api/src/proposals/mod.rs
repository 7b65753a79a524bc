//! Serves proposals: drafts of agents and skills that become commits and pull requests of the configuration's repository.
//!
//! An order is stored, and `sluice up` continues it. Proposals of other accounts exist for operators alone.

mod body;
mod view;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::id::{ExternalId, ProposalId};
use runner_engine::{relay::RelayError, run_order::OrderError};
use runner_proposals::{
    NotProposed, Ordered, Proposal, ProposalError, ProposalOrder, ProposalRecord, ProposalState,
    WATCH_INTERVAL,
};
use runner_store::{ProposalPlace, Store, StoredProposal};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

pub use self::view::ProposalView;
use self::{
    body::{MAX_BODY, ProposalBody, new_proposal_id},
    view::ProposalPageView,
};
use crate::{
    body::{ObjectId, read_json, read_query, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    paging::{cut_page, page_size, read_cursor, write_cursor},
    problem::Problem,
    runs::IDEMPOTENCY_KEY,
};

/// Query of the list of proposals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ProposalsQuery {
    /// Value of `nextCursor` of the page before.
    #[param(pattern = r"^[0-9]{1,18}\.ap-[0-9a-f]{16}$", nullable = false)]
    cursor: Option<String>,
    /// Most proposals of a page; 50 if absent.
    #[param(minimum = 1, maximum = 200, nullable = false)]
    limit: Option<u32>,
}

/// Proposes an agent or a skill.
pub(crate) async fn propose(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    // It would get past the limits of its token to other agents.
    caller.refuse_limited()?;
    let id = new_proposal_id(request.headers(), &caller)?;
    let body: ProposalBody = read_json(request, MAX_BODY).await?;
    let order = ProposalOrder {
        id,
        account: caller.account().clone(),
        principal: ExternalId::parse(&caller.name()).map_err(|_never| Error::Internal)?,
        content: body.content()?,
    };
    let store = &context.opened().await?.store;
    let settings = context.settings().get();
    let github = context.github.as_ref().ok_or(Error::Internal)?;
    let proposal = match order.store(store, &settings, github).await? {
        Ordered::New(proposal) => {
            let Proposal { id, content, .. } = &*proposal;
            tracing::info!(proposal = %id, kind = content.kind().word(), name = content.name(), by = caller.name(), "proposal ordered");
            proposal
        }
        Ordered::Before(proposal) => proposal,
    };
    let view = ProposalView::of(&proposal, &caller);
    Ok((StatusCode::ACCEPTED, json_response(&view)).into_response())
}

pub(crate) fn propose_operation() -> Operation {
    let proposal = AnswerSpec::json::<ProposalView>(
        StatusCode::ACCEPTED,
        "The proposal, which is stored: its pull request follows within seconds.",
    );
    let example = json!({
        "kind": "agent",
        "agentId": "team:reviewer",
        "settings": { "image": "team/reviewer:1", "argv": ["node", "/agent/run.mjs"], "run_timeout": "10m" },
    });
    Operation::new("proposeAgent", "Proposes an agent or a skill as a pull request.", proposal)
        .described("The commit changes one file of the repository of `[agents_repository]`, on top of its newest commit. This host's configuration stays as it is. Repeated with the same `Idempotency-Key`, it is proposed once.")
        .without_query()
        .header(IDEMPOTENCY_KEY, "Key under which the order is repeated safely.", schemas::header_text())
        .body::<ProposalBody>(&example)
        .refuses([
            Problem::AGENTS_REPOSITORY_MISSING,
            Problem::PROPOSALS_EXHAUSTED,
            Problem::IDEMPOTENCY_KEY_TAKEN,
            Problem::INVALID_REPOSITORY,
        ])
}

/// Lists proposals, the newest first.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let query: ProposalsQuery = read_query(request.uri())?;
    let limit = page_size(query.limit)?;
    let before: Option<ProposalPlace> =
        read_cursor(query.cursor.as_deref(), |id| ProposalId::parse(id).ok())?;
    let store = &context.opened().await?.store;
    let mut stored = store.proposals(&caller.scope(), before.as_ref(), limit + 1).await?;
    let place = |last: &StoredProposal| write_cursor(last.created, &last.id);
    let next_cursor = cut_page(&mut stored, limit).map(place);
    // One that cannot be read does not keep the others.
    let read: Vec<_> = stored.iter().filter_map(|stored| Proposal::read(stored).ok()).collect();
    hurry(store, &read).await?;
    let proposals = read.iter().map(|proposal| ProposalView::of(proposal, &caller)).collect();
    Ok(json_response(&ProposalPageView { proposals, next_cursor }))
}

pub(crate) fn list_operation() -> Operation {
    let page = AnswerSpec::json::<ProposalPageView>(StatusCode::OK, "A page of the proposals.");
    Operation::new("listProposals", "Lists proposals of agents and skills, the newest first.", page)
        .query::<ProposalsQuery>()
}

/// Answers with one proposal.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let id = ProposalId::parse(&id).map_err(|_invalid| Error::Route)?;
    let store = &context.opened().await?.store;
    let stored = store.proposal(&id, &caller.scope()).await?.ok_or(Error::Route)?;
    let proposal = Proposal::read(&stored)?;
    hurry(store, std::slice::from_ref(&proposal)).await?;
    Ok(json_response(&ProposalView::of(&proposal, &caller)))
}

/// Makes those due that wait for people, so that their state is soon a new one. GitHub may have asked for a delay after a
/// failure, which is kept.
async fn hurry(store: &Store, proposals: &[Proposal]) -> Result<(), Error> {
    let waits = |record: &ProposalRecord| {
        matches!(record.state, ProposalState::Proposed { .. }) && record.fault.is_none()
    };
    let waiting = proposals.iter().filter(|proposal| waits(&proposal.record));
    let waiting: Vec<_> = waiting.map(|proposal| proposal.id.clone()).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    Ok(store.hurry_proposals(&waiting, WATCH_INTERVAL).await?)
}

pub(crate) fn show_operation() -> Operation {
    let proposal = AnswerSpec::json::<ProposalView>(StatusCode::OK, "The proposal.");
    Operation::new("getProposal", "Answers with a proposal.", proposal)
        .described("The state of one that waits to be merged is at most about a minute old from the second request on.")
        .without_query()
}

impl From<ProposalError> for Error {
    fn from(error: ProposalError) -> Self {
        match error {
            ProposalError::Relay(RelayError::Store(error)) => Self::Store(error),
            error => Self::NotProposed(Box::new(error.into())),
        }
    }
}

impl From<NotProposed> for Error {
    fn from(error: NotProposed) -> Self {
        match error {
            NotProposed::Repository(error) => Self::Order(OrderError::Repo(error)),
            NotProposed::Store(error) => error.into(),
            error => Self::NotProposed(Box::new(error)),
        }
    }
}
