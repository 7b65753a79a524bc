//! Tests agents in gateways: two changes at once, steps, removals, behaviour files, and restores.

use std::slice;

use platform_core::id::{AccountId, GatewayAgentId, GatewayId};
use runner_model::{
    behaviour::BehaviourFile,
    gateway_agent::{AgentName, AllowedCommand, Capabilities, CommandMode},
};
use runner_store::{
    BehaviourFileStored, GatewayAgent, GatewayAgentAdded, GatewayAgentChanged, GatewayAgentKey,
    GatewayAgentSettings, MAX_GATEWAY_AGENTS, NewGatewayAgent, Onto, Store,
};

use crate::database::Database;

crate::on_both!(
    an_id_is_given_once,
    the_second_of_two_changes_is_told,
    a_step_is_known_until_it_is_applied,
    allowing_a_command_applies_nothing,
    a_removed_agent_stays_until_it_is_gone,
    behaviour_files_raise_the_revision,
    the_second_text_of_a_file_is_told,
    agents_are_backed_up,
);

pub(crate) fn key(agent: &str) -> GatewayAgentKey {
    GatewayAgentKey { gateway: GatewayId::parse("g").unwrap(), agent: GatewayAgentId::parse(agent).unwrap() }
}

pub(crate) fn new(name: &str) -> NewGatewayAgent {
    let name = AgentName::parse(name).unwrap();
    NewGatewayAgent {
        key: key(name.id().as_str()),
        account: Some(AccountId::parse("acct-1").unwrap()),
        workspace: format!("/workspace/agents/{}", name.id()),
        settings: GatewayAgentSettings {
            name,
            avatar: None,
            model: None,
            capabilities: Capabilities::default(),
        },
    }
}

async fn added(store: &Store, name: &str) -> GatewayAgent {
    match store.add_gateway_agent(&new(name)).await.unwrap() {
        GatewayAgentAdded::New(agent) => *agent,
        other => panic!("{other:?}"),
    }
}

fn asking(agent: &GatewayAgent) -> GatewayAgentSettings {
    let mut settings = agent.agent.settings.clone();
    settings.capabilities.commands = CommandMode::Ask;
    settings
}

async fn an_id_is_given_once(database: Database) {
    let store = database.open().await;
    let first = added(&store, "Research Bot").await;
    assert_eq!((first.revision, first.applied, first.is_applied()), (1, 0, false));
    let again = store.add_gateway_agent(&new("research BOT")).await.unwrap();
    assert_eq!(again, GatewayAgentAdded::Exists(Box::new(first.clone())));
    assert_eq!(store.gateway_agents(&key("x").gateway).await.unwrap(), [first]);
    for number in 1..MAX_GATEWAY_AGENTS {
        added(&store, &format!("Bot {number}")).await;
    }
    assert_eq!(store.add_gateway_agent(&new("Other")).await.unwrap(), GatewayAgentAdded::TooMany);
    let other = GatewayId::parse("h").unwrap();
    assert_eq!(store.gateway_agents(&other).await.unwrap(), []);
}

async fn the_second_of_two_changes_is_told(database: Database) {
    let store = database.open().await;
    let agent = added(&store, "Bot").await;
    let asking = asking(&agent);
    let changed = store.change_gateway_agent(&key("bot"), 1, &asking).await.unwrap();
    let GatewayAgentChanged::Changed(changed) = changed else { panic!("{changed:?}") };
    assert_eq!((changed.revision, &changed.agent.settings), (2, &asking));
    let other = GatewayAgentSettings { name: AgentName::parse("Other name").unwrap(), ..asking.clone() };
    let conflict = store.change_gateway_agent(&key("bot"), 1, &other).await.unwrap();
    assert_eq!(conflict, GatewayAgentChanged::Conflict(changed.clone()));
    // The same change again changes nothing, whatever it was made from.
    let repeated = store.change_gateway_agent(&key("bot"), 1, &asking).await.unwrap();
    assert_eq!(repeated, GatewayAgentChanged::Changed(changed));
    let unknown = store.change_gateway_agent(&key("none"), 1, &asking).await.unwrap();
    assert_eq!(unknown, GatewayAgentChanged::Unknown);
}

async fn a_step_is_known_until_it_is_applied(database: Database) {
    let store = database.open().await;
    let agent = added(&store, "Bot").await;
    let gateway = key("bot").gateway;
    assert_eq!(store.gateways_with_changed_agents().await.unwrap(), slice::from_ref(&gateway));
    store.store_gateway_agent_step(&key("bot"), 1, "configuration", Some("it is down")).await.unwrap();
    store.store_gateway_agent_step(&key("bot"), 7, "files", Some("of another revision")).await.unwrap();
    let stored = store.gateway_agent(&key("bot")).await.unwrap().unwrap();
    assert_eq!(
        (stored.step.as_deref(), stored.problem.as_deref()),
        (Some("configuration"), Some("it is down"))
    );
    // A change while an earlier revision is applied leaves the agent changed.
    store.change_gateway_agent(&key("bot"), 1, &asking(&agent)).await.unwrap();
    store.store_gateway_agent_applied(&key("bot"), 1).await.unwrap();
    assert_eq!(store.gateways_with_changed_agents().await.unwrap(), [gateway]);
    store.store_gateway_agent_applied(&key("bot"), 2).await.unwrap();
    let stored = store.gateway_agent(&key("bot")).await.unwrap().unwrap();
    assert_eq!((stored.step, stored.problem, stored.applied), (None, None, 2));
    assert_eq!(store.gateways_with_changed_agents().await.unwrap(), []);
}

async fn allowing_a_command_applies_nothing(database: Database) {
    let store = database.open().await;
    let mut settings = added(&store, "Bot").await.agent.settings;
    store.store_gateway_agent_applied(&key("bot"), 1).await.unwrap();
    let command = AllowedCommand::parse("make test").unwrap();
    settings.capabilities.allowed_commands = [command].into();
    store.change_gateway_agent(&key("bot"), 1, &settings).await.unwrap();
    let stored = store.gateway_agent(&key("bot")).await.unwrap().unwrap();
    assert_eq!((stored.revision, stored.is_applied()), (2, true));
    // The control: its gateway has to take any other change.
    settings.capabilities.commands = CommandMode::Ask;
    store.change_gateway_agent(&key("bot"), 2, &settings).await.unwrap();
    assert!(!store.gateway_agent(&key("bot")).await.unwrap().unwrap().is_applied());
}

async fn a_removed_agent_stays_until_it_is_gone(database: Database) {
    let store = database.open().await;
    added(&store, "Bot").await;
    put(&store, "bot", "kind", None).await;
    let removed = store.remove_gateway_agent(&key("bot")).await.unwrap().unwrap();
    assert!(removed.removed.is_some());
    assert_eq!(store.remove_gateway_agent(&key("bot")).await.unwrap(), None, "once");
    let added = store.add_gateway_agent(&new("Bot")).await.unwrap();
    assert!(matches!(added, GatewayAgentAdded::Exists(_)), "its id is not free yet");
    store.store_gateway_agent_applied(&key("bot"), removed.revision).await.unwrap();
    assert_eq!(store.gateway_agent(&key("bot")).await.unwrap(), None);
    assert_eq!(store.behaviour_files(&key("bot")).await.unwrap(), []);
}

async fn put(store: &Store, agent: &str, text: &str, base: Option<u64>) -> BehaviourFileStored {
    store.put_behaviour_file(&key(agent), BehaviourFile::Soul, text, base).await.unwrap()
}

async fn the_second_text_of_a_file_is_told(database: Database) {
    let store = database.open().await;
    added(&store, "Bot").await;
    assert_eq!(put(&store, "bot", "be kind", Some(0)).await, BehaviourFileStored::Stored);
    let BehaviourFileStored::Conflict(Some(current)) = put(&store, "bot", "be brief", Some(0)).await else {
        panic!("the first text is lost")
    };
    assert_eq!((current.content.as_str(), current.revision), ("be kind", 2));
    let unchanged = store.gateway_agent(&key("bot")).await.unwrap().unwrap();
    assert_eq!(unchanged.revision, 2, "nothing is given to the gateway");
    assert_eq!(put(&store, "bot", "be kind", Some(0)).await, BehaviourFileStored::Stored, "another try");
    assert_eq!(put(&store, "bot", "", Some(2)).await, BehaviourFileStored::Stored);
    assert_eq!(put(&store, "bot", "be brief", Some(0)).await, BehaviourFileStored::Stored, "it was empty");
}

async fn behaviour_files_raise_the_revision(database: Database) {
    let store = database.open().await;
    added(&store, "Bot").await;
    for (text, revision) in [("be kind", 2), ("be brief\0", 3), ("", 4)] {
        assert_eq!(put(&store, "bot", text, None).await, BehaviourFileStored::Stored);
        let stored = store.gateway_agent(&key("bot")).await.unwrap().unwrap();
        assert_eq!(stored.revision, revision);
        let files = store.behaviour_files(&key("bot")).await.unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!((&files[0].content, files[0].revision), (&text.replace('\0', "\u{fffd}"), revision));
    }
    assert_eq!(put(&store, "none", "x", None).await, BehaviourFileStored::Unknown);
    assert_eq!(store.behaviour_files(&key("none")).await.unwrap(), []);
}

async fn agents_are_backed_up(database: Database) {
    let store = database.open().await;
    added(&store, "Bot").await;
    put(&store, "bot", "be kind", None).await;
    let before = store.gateway_agent(&key("bot")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    store.backup(&file).await.unwrap();
    put(&store, "bot", "", None).await;
    store.restore(&file, Onto::Anything).await.unwrap();
    assert_eq!(store.gateway_agent(&key("bot")).await.unwrap(), before);
    assert_eq!(store.behaviour_files(&key("bot")).await.unwrap()[0].content, "be kind");
}
