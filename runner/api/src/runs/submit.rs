//! Stores an order as a run, once.

use platform_core::{id::RunId, traceparent::Traceparent};
use runner_engine::{order::RunOrder, request::RunRequest, run::LeasedRun};
use runner_store::{self as store, Created, Run, Store};

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
    Ok(LeasedRun::enqueue(&opened.store, &request, &settings.accounts).await?)
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
