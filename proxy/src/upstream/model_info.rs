//! Reads the prices of models that LiteLLM shows at `/model/info`.
//!
//! A model is priced if each of its deployments is, and costs what the dearest of them costs, for each kind of token.
//! LiteLLM writes 0 where it knows no price, and names in `pricing_overrides` what its configuration says. Only a zero
//! that is named there is a price, and that of an embedding's output, which does not exist.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use http::{HeaderValue, StatusCode, Uri};
use platform_core::{
    json::{self, Bounds, Raw, read_member},
    tariff::Tariff,
};
use platform_runtime::report;
use serde::Deserialize;

use super::{QueryError, ReadError, Upstream, model_rates::ModelRates};

/// Largest answer that is read: LiteLLM writes some 7 kB for a deployment.
const MAX_ANSWER: usize = 32 << 20;
/// Bounds of the answer. What operators add to a deployment may have any form: it is skipped, not kept.
const BOUNDS: Bounds = Bounds { bytes: MAX_ANSWER, depth: usize::MAX, values: usize::MAX };
/// Most deployments of an answer.
const MAX_DEPLOYMENTS: usize = 10_000;
/// Longest wait for the answer.
const TIMEOUT: Duration = Duration::from_secs(25);
/// Path of the prices.
const PATH: &str = "/model/info";

/// Reason why no prices were read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelInfoError {
    #[error("the upstream did not answer GET {PATH}: {reason}")]
    Unanswered { reason: String },
    #[error("the upstream answered {status} to GET {PATH}")]
    Refused { status: StatusCode },
    #[error("the upstream's answer to GET {PATH} has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the upstream's answer to GET {PATH} has {deployments} deployments, more than {MAX_DEPLOYMENTS}")]
    TooMany { deployments: usize },
    #[error("the upstream's answer to GET {PATH} is not a list of models")]
    Unreadable(#[source] json::Error),
}

/// Prices of models, by the names that calls ask for.
pub(crate) type ModelPrices = BTreeMap<String, Tariff>;

#[derive(Deserialize)]
struct Deployments<'a> {
    #[serde(borrow)]
    data: Vec<Raw<'a>>,
}

#[derive(Deserialize)]
struct Deployment<'a> {
    model_name: String,
    #[serde(borrow)]
    model_info: Option<Raw<'a>>,
}

impl Upstream {
    /// Returns the prices that the upstream shows to the holder of `authorization`.
    ///
    /// # Errors
    /// If it shows none, or its answer cannot be read as a whole.
    pub(crate) async fn model_prices(
        &self,
        authorization: Option<&HeaderValue>,
    ) -> Result<ModelPrices, ModelInfoError> {
        let asked = self.get(Uri::from_static(PATH), authorization, MAX_ANSWER);
        match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok((StatusCode::OK, body))) => prices(&body),
            Ok(Ok((status, _body))) => Err(ModelInfoError::Refused { status }),
            Ok(Err(QueryError::Unread(ReadError::TooLong { limit }))) => {
                Err(ModelInfoError::TooLarge { limit })
            }
            Ok(Err(error)) => Err(ModelInfoError::Unanswered { reason: report::chain(&error) }),
            Err(_elapsed) => {
                let reason = format!("no whole answer within {} s", TIMEOUT.as_secs());
                Err(ModelInfoError::Unanswered { reason })
            }
        }
    }
}

/// Reads the prices of an answer. A deployment without a name spoils it, because it may be one of any model.
fn prices(body: &[u8]) -> Result<ModelPrices, ModelInfoError> {
    let Deployments { data } = json::from_slice(body, BOUNDS).map_err(ModelInfoError::Unreadable)?;
    if data.len() > MAX_DEPLOYMENTS {
        return Err(ModelInfoError::TooMany { deployments: data.len() });
    }
    let mut prices: BTreeMap<String, Option<Tariff>> = BTreeMap::new();
    for deployment in data {
        let Deployment { model_name, model_info } = deployment.read().map_err(ModelInfoError::Unreadable)?;
        let rates: Option<ModelRates<'_>> = read_member(model_info);
        let tariff = rates.and_then(|rates| rates.tariff());
        match prices.entry(model_name) {
            Entry::Vacant(first) => drop(first.insert(tariff)),
            Entry::Occupied(mut known) => {
                let dearer = known.get().zip(tariff).map(|(known, tariff)| known.or_dearer(&tariff));
                known.insert(dearer);
            }
        }
    }
    Ok(prices.into_iter().filter_map(|(model, tariff)| Some((model, tariff?))).collect())
}
