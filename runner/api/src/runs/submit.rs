//! Stores an order as a run, once.

use platform_core::{
    id::{AccountId, RunId},
    traceparent::Traceparent,
};
use platform_runtime::settings::Settings;
use runner_engine::{
    run::LeasedRun,
    run_order::{OrderError, RunOrder},
    run_request::RunRequest,
};
use runner_store::{self as store, Balance, Created, Run, Store};

use crate::{
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
};

/// Stores `order` for any worker. The same order again returns the same run.
pub(crate) async fn submit(
    context: &ApiContext,
    opened: &OpenedStore,
    caller: &Caller,
    order: RunOrder,
    trace: Option<Traceparent>,
) -> Result<Created, Error> {
    if let Some(run) = ordered_before(&opened.store, caller, &order).await? {
        return Ok(Created::Existing(run));
    }
    let settings = context.settings().get();
    let request = order.request(&settings, &opened.store).await?.part_of(trace);
    if let (Some(github), Some(repo)) = (&context.github, &request.spec.repo) {
        repo.check_credential(github).map_err(OrderError::from)?;
    }
    check_balance(&opened.store, &settings, &request.account, &request.spec.model).await?;
    Ok(LeasedRun::enqueue(&opened.store, &request, &settings.accounts).await?)
}

/// Checks that the balance of `account` is not below its floor, unless `model` is free. An account without a top-up or a
/// receipt has no balance that could be.
pub(super) async fn check_balance(
    store: &Store,
    settings: &Settings,
    account: &AccountId,
    model: &str,
) -> Result<(), Error> {
    if settings.floor_of(account).is_none() || settings.billing.free_models.contains(model) {
        return Ok(());
    }
    let balances = store.balances(Some(account)).await?;
    let Some(Balance { credits, .. }) = balances.first() else { return Ok(()) };
    match settings.floor_above(account, *credits) {
        Some(floor) => Err(Error::BalanceExhausted { account: account.clone(), credits: *credits, floor }),
        None => Ok(()),
    }
}

/// Returns the run that the same order has made. A retry gets its run even if the configuration would not allow it any
/// more.
async fn ordered_before(store: &Store, caller: &Caller, order: &RunOrder) -> Result<Option<Run>, Error> {
    let run_id: &RunId = &order.run_id;
    match store.run_within(run_id, &caller.scope()).await {
        Err(store::Error::Unknown { .. }) => return Ok(None),
        found => drop(found?),
    }
    let record = store.record(run_id).await?;
    let stored = RunRequest::stored(&record).ok().and_then(|request| request.spec.order_hash);
    Ok((stored.is_some() && stored == order.hash).then_some(record.run))
}
