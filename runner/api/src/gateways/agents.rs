//! Serves agents of gateways: members make and change those of their account's gateways, operators those of all.
//!
//! A change is stored, and `sluice up` gives it to the gateway. Gateways of other accounts, and shared ones, do not exist for
//! a member.

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use platform_core::{
    control::offers,
    id::{GatewayAgentId, GatewayId, ModelName},
};
use platform_runtime::settings::{Gateway, Settings};
use runner_engine::agents::fetch_offered_models;
use runner_model::gateway_agent::{AgentName, AvatarSeed};
use runner_store::{
    GatewayAgent, GatewayAgentAdded, GatewayAgentChanged, GatewayAgentKey, MAX_GATEWAY_AGENTS, Store,
};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::agent_view::{GatewayAgentListView, GatewayAgentView, SettingsBody};
use crate::{
    body::{ObjectId, read_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Largest body: 200 commands of 4 KiB, with room for escapes.
const MAX_BODY: usize = 2 << 20;

/// New agent, as a client sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewGatewayAgent)]
#[serde(deny_unknown_fields)]
struct NewAgentBody {
    /// Name for people. Its letters and digits become the id: `Research Bot` is `research-bot`.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    name: AgentName,
    /// Text from which its picture is drawn; its name if absent.
    #[schema(value_type = Option<String>)]
    avatar: Option<AvatarSeed>,
}

/// Gateway that a path names, and that exists for the caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundGateway<'s> {
    pub(super) id: &'s GatewayId,
    pub(super) gateway: &'s Gateway,
}

impl<'s> FoundGateway<'s> {
    /// Finds the gateway `id`, if it exists for `caller`.
    pub(super) fn find(settings: &'s Settings, caller: &Caller, id: &str) -> Result<Self, Error> {
        let id = GatewayId::parse(id).map_err(|_invalid| Error::Route)?;
        let (id, gateway) = settings.gateways.get_key_value(&id).ok_or(Error::Route)?;
        if exists_for(caller, gateway) { Ok(Self { id, gateway }) } else { Err(Error::Route) }
    }

    /// Returns the key of the agent `agent`.
    pub(super) fn key(&self, agent: &str) -> Result<GatewayAgentKey, Error> {
        let agent = GatewayAgentId::parse(agent).map_err(|_invalid| Error::Route)?;
        Ok(GatewayAgentKey { gateway: self.id.clone(), agent })
    }

    /// Returns a stored agent, if it exists for `caller`: those of an account that the gateway served before are the
    /// operators'.
    pub(super) async fn stored(
        &self,
        store: &Store,
        caller: &Caller,
        key: &GatewayAgentKey,
    ) -> Result<GatewayAgent, Error> {
        let stored = store.gateway_agent(key).await?.filter(|stored| self.exists(stored, caller));
        stored.ok_or(Error::Route)
    }

    /// Checks that an agent exists for `caller`: the configuration describes it, or it is stored.
    pub(super) async fn check_exists(
        &self,
        store: &Store,
        caller: &Caller,
        key: &GatewayAgentKey,
    ) -> Result<(), Error> {
        if self.is_fixed(&key.agent) { Ok(()) } else { self.stored(store, caller, key).await.map(drop) }
    }

    fn exists(&self, stored: &GatewayAgent, caller: &Caller) -> bool {
        caller.is_operator() || stored.agent.account == self.gateway.account
    }

    /// Returns whether the configuration describes an agent of this id.
    pub(super) fn is_fixed(&self, agent: &GatewayAgentId) -> bool {
        self.gateway.has_fixed_agent(agent.as_str())
    }

    /// Returns the key of an agent that people made.
    pub(super) fn key_to_change(&self, caller: &Caller, agent: &str) -> Result<GatewayAgentKey, Error> {
        caller.refuse_limited()?;
        let key = self.key(agent)?;
        if self.is_fixed(&key.agent) { Err(Error::GatewayAgentFixed(key.agent)) } else { Ok(key) }
    }
}

/// Returns whether `gateway` exists for `caller`.
pub(super) fn exists_for(caller: &Caller, gateway: &Gateway) -> bool {
    caller.is_operator() || gateway.account.as_ref() == Some(caller.account())
}

/// Lists the agents of a gateway.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(gateway): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let stored = context.opened().await?.store.gateway_agents(found.id).await?;
    let fixed = found.gateway.fixed_agents().iter().filter_map(|agent| GatewayAgentId::parse(agent).ok());
    let fixed = fixed.map(|agent| GatewayAgentView::of_configuration(&agent, found.id, found.gateway));
    let made = stored.into_iter().filter(|agent| found.exists(agent, &caller));
    let made = made.map(|agent| GatewayAgentView::of(agent, found.id, found.gateway));
    Ok(json_response(&GatewayAgentListView { agents: fixed.chain(made).collect() }))
}

pub(crate) fn list_operation() -> Operation {
    let agents = AnswerSpec::json::<GatewayAgentListView>(StatusCode::OK, "The agents, by their ids.");
    Operation::new("listGatewayAgents", "Lists the agents of a gateway.", agents)
        .described("Those of the configuration come first, then those that people made. Of a gateway elsewhere, only the latter are known.")
        .without_query()
}

/// Makes an agent.
pub(crate) async fn create(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(gateway): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let NewAgentBody { name, avatar } = read_json(request, MAX_BODY).await?;
    let key = found.key_to_change(&caller, name.id().as_str())?;
    let new = runner_gateways::new_agent(found.gateway, key, name, avatar);
    match context.opened().await?.store.add_gateway_agent(&new).await? {
        GatewayAgentAdded::New(added) => {
            tracing::info!(agent = %new.key, by = caller.name(), "agent of a gateway made");
            let view = GatewayAgentView::of(*added, found.id, found.gateway);
            Ok((StatusCode::CREATED, json_response(&view)).into_response())
        }
        GatewayAgentAdded::Exists(existing) => {
            let current = json!(GatewayAgentView::of(*existing, found.id, found.gateway));
            Err(Error::GatewayAgentExists { current: Box::new(current) })
        }
        GatewayAgentAdded::TooMany => Err(Error::GatewayAgentsExhausted(MAX_GATEWAY_AGENTS)),
    }
}

pub(crate) fn create_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(
        StatusCode::CREATED,
        "The agent, which its gateway gets within seconds.",
    );
    Operation::new("createGatewayAgent", "Makes an agent in a gateway.", agent)
        .described("It may run commands, reach the web and use files, as far as its gateway's policy allows.")
        .without_query()
        .body::<NewAgentBody>(&json!({ "name": "Research Bot" }))
        .refuses([
            Problem::GATEWAY_AGENT_EXISTS,
            Problem::GATEWAY_AGENT_FIXED,
            Problem::GATEWAY_AGENTS_EXHAUSTED,
        ])
}

/// Shows an agent.
pub(crate) async fn show(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key(&agent)?;
    if found.is_fixed(&key.agent) {
        let view = GatewayAgentView::of_configuration(&key.agent, found.id, found.gateway);
        return Ok(json_response(&view));
    }
    let stored = found.stored(&context.opened().await?.store, &caller, &key).await?;
    Ok(json_response(&GatewayAgentView::of(stored, found.id, found.gateway)))
}

pub(crate) fn show_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(StatusCode::OK, "The agent.");
    Operation::new("showGatewayAgent", "Shows an agent of a gateway.", agent).without_query()
}

/// Changes an agent.
pub(crate) async fn change(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key_to_change(&caller, &agent)?;
    let body: SettingsBody = read_json(request, MAX_BODY).await?;
    let base = body.revision;
    let yours = json!(body);
    let wanted = body.settings();
    if wanted.capabilities.allowed_commands.len() > runner_model::gateway_agent::MAX_ALLOWED_COMMANDS {
        return Err(Error::Invalid("`allowedCommands` has more than 200 commands".to_owned()));
    }
    if let Some(model) = &wanted.model {
        check_model(&context, &settings, model).await?;
    }
    let store = &context.opened().await?.store;
    found.stored(store, &caller, &key).await?;
    match store.change_gateway_agent(&key, base, &wanted).await? {
        GatewayAgentChanged::Changed(changed) => {
            tracing::info!(agent = %key, revision = changed.revision, by = caller.name(), "agent of a gateway changed");
            Ok(json_response(&GatewayAgentView::of(*changed, found.id, found.gateway)))
        }
        GatewayAgentChanged::Conflict(current) => {
            let current = json!(GatewayAgentView::of(*current, found.id, found.gateway));
            Err(Error::GatewayAgentChanged { current: Box::new(current), yours: Box::new(yours) })
        }
        GatewayAgentChanged::Unknown => Err(Error::Route),
    }
}

/// Checks that the upstream offers `model`, or the configuration names it. If the upstream says nothing, runs find out.
pub(super) async fn check_model(
    context: &ApiContext,
    settings: &Settings,
    model: &ModelName,
) -> Result<(), Error> {
    if settings.named_models().any(|named| named == model.as_str()) {
        return Ok(());
    }
    match fetch_offered_models(&context.data_plane).await {
        Some(offered) if !offers(&offered, model.as_str()) => {
            Err(Error::Invalid(format!("`model`: the upstream does not offer {model}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn change_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(StatusCode::OK, "The agent, with a new revision.");
    let example = json!({
        "revision": 1, "name": "Research Bot", "avatar": null, "model": null,
        "commands": "ask", "web": "off", "files": "on", "allowedCommands": ["make test"],
    });
    Operation::new("changeGatewayAgent", "Changes the settings of an agent.", agent)
        .described("The change is stored at once, and given to the gateway step by step; `state` and `step` show how far it is.")
        .without_query()
        .body::<SettingsBody>(&example)
        .refuses([Problem::GATEWAY_AGENT_CHANGED, Problem::GATEWAY_AGENT_FIXED])
}

/// Removes an agent.
pub(crate) async fn remove(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key_to_change(&caller, &agent)?;
    let store = &context.opened().await?.store;
    found.stored(store, &caller, &key).await?;
    let removed = store.remove_gateway_agent(&key).await?.ok_or(Error::Route)?;
    tracing::info!(agent = %key, by = caller.name(), "agent of a gateway removed");
    let view = GatewayAgentView::of(removed, found.id, found.gateway);
    Ok((StatusCode::ACCEPTED, json_response(&view)).into_response())
}

pub(crate) fn remove_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(
        StatusCode::ACCEPTED,
        "The agent, which is gone once its gateway has lost it.",
    );
    Operation::new("removeGatewayAgent", "Removes an agent from its gateway.", agent)
        .described("A run that uses it ends as it would. The agent's files stay at the gateway.")
        .without_query()
        .refuses([Problem::GATEWAY_AGENT_FIXED])
}
