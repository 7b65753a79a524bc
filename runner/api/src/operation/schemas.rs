//! Defines schemas of texts that crates below define, which know nothing of OpenAPI.
//!
//! Each type here stands for one of theirs in a derived schema, and is never created.

use platform_core::{
    credits::Credits,
    event::{self, OutputStream, Phase},
    host_tools::ToolCallState,
    priority, record,
};
use runner_model::{behaviour::BehaviourFile, conversation, gateway_agent, lifecycle::State};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type, schema::SchemaType},
};

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Begins the schema of a text with this pattern, which also bounds its length.
fn pattern(pattern: &str) -> ObjectBuilder {
    text().pattern(Some(pattern))
}

/// Begins the schema of one of `words`.
fn words(words: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    text().enum_values(Some(words.into_iter().map(Value::from)))
}

/// Declares types that stand for texts, each with its schema. Their comments are the descriptions.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)*) => { $(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(crate) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let description = concat!($($doc),+).trim();
                $schema.description(Some(description)).into()
            }
        }

        impl ToSchema for $name {}
    )* };
}

texts! {
    /// Id of a run.
    RunId = pattern("^[a-z0-9][a-z0-9-]{0,62}$");
    /// Way in which an agent runs commands.
    CommandMode = words(gateway_agent::CommandMode::ALL.map(gateway_agent::CommandMode::word));
    /// State of a capability.
    CapabilitySwitch = words([gateway_agent::Switch::Off.word(), gateway_agent::Switch::On.word()]);
    /// Id of an account.
    AccountId = pattern("^[A-Za-z0-9_./:@+=|~-]{1,128}$");
    /// Name of a mirrored repository.
    RepoName = pattern("^[a-z0-9][a-z0-9-]{0,31}$");
    /// Id of a connection.
    ConnectionId = pattern("^cn-[0-9a-f]{16}$");
    /// Provider of a credential: `github`, or a name of the operator's.
    ConnectionProvider = pattern("^[a-z0-9][a-z0-9_-]{0,63}$");
    /// Scope of a credential at its provider, such as a repository.
    ConnectionScope = pattern("^[!-)+-~]{0,199}[!-~]$");
    /// Id of a proposal.
    ProposalId = pattern("^ap-[0-9a-f]{16}$");
    /// Kind of a proposal.
    ProposalKind = words(runner_proposals::ProposalKind::ALL.map(runner_proposals::ProposalKind::word));
    /// State of a proposal.
    ProposalState = words(runner_proposals::ProposalState::NAMES);
    /// Name of a skill, and of its directory.
    SkillName = pattern("^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$");
    /// Id of an agent: a family and a name.
    AgentId = pattern("^[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*$").max_length(Some(64));
    /// Name of a model, as the upstream knows it.
    ModelName = pattern(r"^[!#-+\--\[\]-~]{1,256}$");
    /// Name of a host tool.
    ToolName = pattern("^[A-Za-z0-9_.-]{1,128}$");
    /// Id that an application has assigned.
    ExternalId = pattern(r"^[^\u0000-\u001f\u007f-\u009f]{1,256}$");
    /// Month in UTC, from 1970 to 9998.
    Month = pattern(
        "^(19[7-9][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-(0[1-9]|1[0-2])$"
    );
    /// Key of a thread.
    ThreadKey = pattern("^[A-Za-z0-9._:-]{1,128}$");
    /// Amount of dollars, as text, so that no float rounds it.
    Dollars = pattern(r"^\$?[0-9]{1,9}(\.[0-9]{1,9})?$");
    /// Names of states of runs, separated by commas.
    RunStates = {
        let name = State::NAMES.join("|");
        pattern(&format!("^({name})(,({name}))*$"))
    };
    /// State of a run.
    RunState = words(State::NAMES);
    /// Urgency of a run.
    Priority = words(priority::Priority::ALL.map(priority::Priority::name));
    /// Phase of a run.
    RunPhase = words(Phase::ALL.map(Phase::name));
    /// Kind of what an agent on a gateway does.
    ActivityKind = words(event::ActivityKind::ALL.map(event::ActivityKind::name));
    /// State of a call of a host tool.
    HostToolState = words(ToolCallState::ALL.map(ToolCallState::word));
    /// Output of a process.
    ProcessOutput = words(OutputStream::ALL.map(OutputStream::name));
    /// Kind of a call.
    CallKind = words([record::Kind::Model, record::Kind::Tool].map(record::Kind::word));
    /// Outcome of a call.
    CallOutcome = words(record::Outcome::ALL.map(record::Outcome::word));
    /// Accuracy of token counts.
    TokensAccuracy = words(record::TokensSource::ALL.map(record::TokensSource::word));
    /// Source of a cost.
    CallCostSource = words(record::CostSource::ALL.map(record::CostSource::word));
    /// Role of a message's author.
    MessageRole = words(conversation::Role::ALL.map(conversation::Role::name));
    /// Name of a behaviour file of an agent.
    BehaviourFileName = words(BehaviourFile::ALL.map(BehaviourFile::name));
    /// Code of a failed run; later versions may add codes.
    RunErrorCode = text();
}

/// Message of a conversation.
#[derive(ToSchema)]
#[schema(as = Message)]
#[expect(dead_code, reason = "the model defines the message; this is its schema")]
pub(crate) struct ConversationMessage {
    role: MessageRole,
    /// Text of the message.
    content: String,
}

/// Number of credits to give, or, if it is negative, to take back.
#[derive(Debug)]
pub(crate) enum TopUpCredits {}

impl PartialSchema for TopUpCredits {
    fn schema() -> RefOr<Schema> {
        let integer = || ObjectBuilder::new().schema_type(Type::Integer);
        let greatest = Credits::GREATEST.0;
        OneOfBuilder::new()
            .item(integer().minimum(Some(1)).maximum(Some(greatest)))
            .item(integer().minimum(Some(-greatest)).maximum(Some(-1)))
            .description(Some("Number of credits to give, or, if it is negative, to take back."))
            .into()
    }
}

impl ToSchema for TopUpCredits {}

/// Settings of an agent's entry.
#[derive(Debug)]
pub(crate) enum AgentSettings {}

impl PartialSchema for AgentSettings {
    fn schema() -> RefOr<Schema> {
        let description = "Settings of the entry, as the configuration file names them: each a text, a number, a truth value or a list.";
        let mapping = ObjectBuilder::new().property_names(Some(pattern("^[a-z0-9_]+$")));
        mapping.description(Some(description)).into()
    }
}

impl ToSchema for AgentSettings {}

/// Returns the schema of the value of a header: 1 to 256 printable ASCII characters, without a blank at an end.
pub(crate) fn header_text() -> RefOr<Schema> {
    pattern("^[!-~]([ -~]{0,254}[!-~])?$").into()
}

/// Returns the schema of a text of 1 to `most` characters.
pub(crate) fn short_text(most: usize) -> RefOr<Schema> {
    text().min_length(Some(1)).max_length(Some(most)).into()
}

/// Begins the schema of a number of at least `least`, which may be absent. Its format is not `int64`, because greater
/// numbers are taken.
pub(crate) fn large_number(least: u64) -> ObjectBuilder {
    let types = SchemaType::from_iter([Type::Integer, Type::Null]);
    ObjectBuilder::new().schema_type(types).minimum(Some(least))
}

/// Returns the schema of the number of an event.
pub(crate) fn event_number() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).into()
}
