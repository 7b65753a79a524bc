//! Refuses orders that only the data plane knows to be futile: their model is mistyped, or has no price.
//!
//! A data plane that does not answer, or does not know, refuses nothing here. The calls of the run are still checked.

use std::time::Duration;

use platform_core::{
    closest::find_closest,
    control::{ModelPrice, ShownPrices, offers},
    id::ModelName,
};
use platform_runtime::settings::Settings;
use runner_control_client::DataPlane;
use runner_engine::{
    agents::fetch_offered_models, pricing::check_price_by, run_order::OrderError, run_request::RunRequest,
};
use tokio::time::timeout;

use super::{error::Misused, models::price_of};

/// Longest wait for what the data plane knows of prices.
const PRICES_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks that the model of an order is not mistyped: the upstream or the configuration names it, or none that is close.
/// An upstream may take models that it does not list, such as LiteLLM by a pattern.
pub(super) async fn check_model(
    settings: &Settings,
    data_plane: &DataPlane,
    model: &ModelName,
) -> Result<(), Misused> {
    let named: Vec<_> = settings.named_models().collect();
    if named.contains(&model.as_str()) {
        return Ok(());
    }
    let Some(offered) = fetch_offered_models(data_plane).await else { return Ok(()) };
    if offers(&offered, model.as_str()) {
        return Ok(());
    }
    // LiteLLM may show the price of a model that it does not list.
    let prices = known_prices(data_plane).await.unwrap_or_default();
    if prices.iter().any(|price| price.model == model.as_str()) {
        return Ok(());
    }
    let listed = offered.iter().map(String::as_str).filter(|offer| !offer.contains('*'));
    let listed = listed.chain(named).filter(|name| !are_versions(model.as_str(), name));
    let Some(meant) = find_closest(model.as_str(), listed) else { return Ok(()) };
    Err(Misused(format!(
        "the upstream does not offer model {model} (did you mean {meant}?); `sluice models` lists models, and [prices.\"{model}\"] admits one that the upstream takes without listing it"
    )))
}

/// Returns whether two names differ in numbers alone. A newer version may be listed later than it is offered.
fn are_versions(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(one) == letters(other)
}

/// Checks that calls of the run's model have a price, if a limit of cost applies and the upstream has shown its prices.
pub(super) async fn check_shown_price(
    settings: &Settings,
    data_plane: &DataPlane,
    request: &RunRequest,
) -> Result<(), OrderError> {
    // Only a run with a limit asks the data plane.
    if check_price_by(settings, request, |_| false).is_ok() {
        return Ok(());
    }
    let Some(prices) = known_prices(data_plane).await else { return Ok(()) };
    Ok(check_price_by(settings, request, |model| price_of(model, &prices).is_some())?)
}

/// Returns the prices that limits count with, once the data plane knows those of the upstream.
async fn known_prices(data_plane: &DataPlane) -> Option<Vec<ModelPrice>> {
    let ask = async {
        let shown = data_plane.health().await.ok()?.upstream_prices;
        let is_known = matches!(shown, ShownPrices::Off | ShownPrices::Read | ShownPrices::Refused);
        if is_known { data_plane.prices().await.ok() } else { None }
    };
    timeout(PRICES_TIMEOUT, ask).await.ok().flatten()
}
