//! Serves the next attempt of an ended run.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use runner_engine::{
    run::{NotAttempted, start_next_attempt},
    run_order::OrderError,
    run_request::RunRequest,
};
use runner_store::{Created, Run, Store};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{RunView, find, submit::check_balance};
use crate::{
    body::{ObjectId, read_optional_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
};

/// Largest body of the request.
const MAX_BODY: usize = 4 << 10;

/// Attempt that a client asks for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = NextAttempt)]
#[serde(deny_unknown_fields)]
pub(super) struct AttemptBody {
    /// Number that the attempt must have; the next one if absent.
    attempt: Option<u32>,
}

/// Starts the next attempt of a run. The same expected attempt again answers with the same attempt.
pub(crate) async fn again(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let opened = context.opened().await?;
    let run = find(&opened.store, &caller, &run_id).await?;
    may_repeat(&opened.store, &caller, &run).await?;
    let body: Option<AttemptBody> = read_optional_json(request, MAX_BODY).await?;
    let AttemptBody { attempt } = body.unwrap_or_default();
    // The request that started the present attempt may be repeated.
    if attempt != Some(run.attempt) {
        let stored = stored_request(&opened.store, &run).await?;
        check_balance(&opened.store, &context.settings().get(), &run.account, &stored.spec.model).await?;
    }
    Ok(match start_next_attempt(&opened.store, &run.run_id, attempt).await? {
        Created::New(run) => {
            (StatusCode::ACCEPTED, json_response(&RunView::of(&run, &caller))).into_response()
        }
        Created::Existing(run) => json_response(&RunView::of(&run, &caller)),
    })
}

/// Checks that the caller may order what `run` does: that it may run its agent, and use its repository.
pub(crate) async fn may_order(store: &Store, caller: &Caller, run: &Run) -> Result<(), Error> {
    caller.may_run(&run.agent)?;
    if caller.repositories().is_some() {
        check_repository(caller, &stored_request(store, run).await?)?;
    }
    Ok(())
}

/// Checks that the caller may order what `run` does, and that the limits of the caller's runs are no tighter.
async fn may_repeat(store: &Store, caller: &Caller, run: &Run) -> Result<(), Error> {
    caller.may_run(&run.agent)?;
    if caller.is_operator() && caller.repositories().is_none() {
        return Ok(());
    }
    let request = stored_request(store, run).await?;
    check_repository(caller, &request)?;
    if caller.is_operator() || caller.limits().allow(&request.spec.agent.budget) {
        Ok(())
    } else {
        Err(Error::Limits)
    }
}

async fn stored_request(store: &Store, run: &Run) -> Result<RunRequest, Error> {
    Ok(RunRequest::stored(&store.record(&run.run_id).await?).map_err(NotAttempted::from)?)
}

fn check_repository(caller: &Caller, request: &RunRequest) -> Result<(), Error> {
    let repo = request.spec.repo.as_ref();
    Ok(repo.map_or(Ok(()), |repo| repo.check_allowed(caller.repositories())).map_err(OrderError::from)?)
}
