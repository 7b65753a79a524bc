//! Judges the names of a freeze: which of them may be mistyped.

use std::collections::BTreeMap;

use platform_core::{
    control::{Frozen, UpstreamHealth},
    id::{AgentId, ModelName},
};
use platform_runtime::settings::Agent;
use runner_control_client::DataPlane;

/// Returns `unmatched`, which the data plane does not know, without the models that an entry of `agents` or the
/// upstream's list of models names.
pub async fn unknown_targets(
    mut unmatched: Vec<Frozen>,
    agents: &BTreeMap<AgentId, Agent>,
    data_plane: &DataPlane,
) -> Vec<Frozen> {
    let is_configured = |model: &ModelName| {
        agents
            .values()
            .any(|agent| agent.models.contains(model) || agent.model.as_deref() == Some(model.as_str()))
    };
    unmatched.retain(|target| !matches!(target, Frozen::Model(model) if is_configured(model)));
    if unmatched.iter().any(|target| matches!(target, Frozen::Model(_)))
        && let Ok(UpstreamHealth::Ready { models, .. }) = data_plane.upstream().await
    {
        unmatched.retain(|target| !matches!(target, Frozen::Model(model) if models.iter().any(|offered| offered == model.as_str())));
    }
    unmatched
}
