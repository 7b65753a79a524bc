//! Lists the top-level fields that each route accepts, with a rule for each. A field that is not listed does not pass.
//!
//! Left out on purpose although an SDK documents them:
//!
//! - `moderation` names a second model.
//! - `fallbacks` does so as well, and steers LiteLLM.
//! - `betas` is a header.
//! - `access_programs`, `billing_policy`, `fallback_credit_token`: an identity or a contract.
//! - `user_profile_id`, `workspace_id`: likewise.
//! - `diagnostics`, `thread` and `background_options` name earlier calls.
//!
//! All control fields of LiteLLM (`no-log`, `fallbacks`, `api_base`, `mock_response`, `tags`, `cache`, `guardrails`,
//! `prompt_id` …) are refused because they are not here. A test compares LiteLLM's list with this one.

use platform_core::route::Route;

use platform_core::capability::Capability;

/// Treatment of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Passes as it is; only its grammar is checked.
    Pass,
    /// The model's name.
    Model,
    /// Flag that makes the answer stream.
    Stream,
    /// Options of the stream.
    StreamOptions,
    /// Flag that makes the provider keep the answer.
    Store,
    /// A size that limits use.
    Count(Size),
    /// Amount of thinking that the model may do.
    Thinking,
    /// The end user: Sluicegate's value, or none.
    User,
    /// Notes for the provider's records: Sluicegate's, or none.
    Metadata,
    /// Says who calls, which the upstream gets only in Sluicegate's own words; removed.
    Drop,
    /// Text, or parts of content at any depth.
    Content,
    /// A list of messages or items.
    Items,
    /// Text or tokens, or lists of them: nothing with members.
    Prompt,
    /// A list of tools, of which some may be left out.
    Tools,
    /// A list of functions, as OpenAI had it before tools.
    Functions,
    /// Parts that the answer is to have, some of them parts of tools.
    Include,
    /// Choice of the tool to use.
    ToolChoice,
    /// Only with this grant, unless null or false.
    Needs(Capability),
    /// Null or one of these words; any other only with this grant.
    Among(&'static [&'static [u8]], Capability),
}

/// Tiers of service that cost no more than the usual one; others are up to twice as dear.
const SERVICE_TIERS: Rule =
    Rule::Among(&[b"auto", b"default", b"flex", b"standard", b"standard_only"], Capability::PremiumService);
/// Speeds that cost no more than usual: a fast answer of Anthropic's costs six times as much.
const SPEEDS: Rule = Rule::Among(&[b"standard"], Capability::PremiumService);
/// Regions of inference that cost no more than usual: all others cost a tenth more.
const REGIONS: Rule = Rule::Among(&[b"global"], Capability::PremiumService);

/// Sizes that limits apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    N,
    BestOf,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
}

/// Returns the rule of `field` on `route`.
pub(super) fn rule(route: Route, field: &[u8]) -> Option<Rule> {
    match route {
        Route::ChatCompletions => chat(field),
        Route::Completions => completions(field),
        Route::Responses => responses(field),
        Route::InputTokens => input_tokens(field),
        Route::Compact => compact(field),
        Route::Messages => messages(field),
        Route::CountTokens => count_tokens(field),
        Route::Embeddings => embeddings(field),
        Route::Models | Route::ToolExec | Route::Mcp | Route::Unknown => None,
    }
}

fn chat(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"messages" => Rule::Items,
        b"functions" => Rule::Functions,
        b"max_completion_tokens" => Rule::Count(Size::MaxCompletionTokens),
        b"prediction" => Rule::Content,
        b"web_search_options" => Rule::Needs(Capability::WebSearch),
        b"audio" | b"function_call" | b"modalities" | b"reasoning_effort" | b"response_format"
        | b"verbosity" => Rule::Pass,
        // Not OpenAI's, but what clients of other models behind LiteLLM send; they touch sampling only.
        b"thinking" => Rule::Thinking,
        b"reasoning" | b"enable_thinking" | b"tool_stream" | b"top_k" | b"min_p" | b"repetition_penalty" => {
            Rule::Pass
        }
        _ => return sampling(field).or_else(|| openai_tools(field)).or_else(|| openai(field)),
    })
}

fn completions(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"prompt" => Rule::Prompt,
        b"best_of" => Rule::Count(Size::BestOf),
        b"echo" | b"suffix" => Rule::Pass,
        // Not documented here, and LiteLLM would read them.
        b"metadata" | b"safety_identifier" | b"store" => return None,
        _ => return sampling(field).or_else(|| openai(field)),
    })
}

fn responses(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"input" => Rule::Items,
        b"instructions" => Rule::Content,
        b"max_output_tokens" => Rule::Count(Size::MaxOutputTokens),
        b"previous_response_id" | b"conversation" => Rule::Needs(Capability::StoredResponses),
        b"prompt" => Rule::Needs(Capability::StoredPrompts),
        b"background" => Rule::Needs(Capability::Background),
        // Codex's ids of its session, thread, turn and installation. No model needs them.
        b"client_metadata" => Rule::Drop,
        b"include" => Rule::Include,
        b"context_management"
        | b"image"
        | b"max_tool_calls"
        | b"reasoning"
        | b"temperature"
        | b"text"
        | b"top_logprobs"
        | b"top_p"
        | b"truncation" => Rule::Pass,
        _ => return openai_tools(field).or_else(|| openai(field)),
    })
}

fn input_tokens(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"tools" => Rule::Tools,
        b"tool_choice" => Rule::ToolChoice,
        b"conversation" => Rule::Needs(Capability::StoredResponses),
        b"personality" | b"truncation" => Rule::Pass,
        _ => return shared_with_responses(field),
    })
}

/// The API documents neither a stream nor a length. Codex sends more than the API documents, tools among it.
fn compact(field: &[u8]) -> Option<Rule> {
    match field {
        b"image" => Some(Rule::Pass),
        b"prompt_cache_key"
        | b"prompt_cache_retention"
        | b"prompt_cache_options"
        | b"service_tier"
        | b"tools"
        | b"tool_choice" => openai_tools(field),
        _ => shared_with_responses(field),
    }
}

/// Returns the rule of a field that the routes below `/v1/responses` share with it.
fn shared_with_responses(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"model" => Rule::Model,
        b"input" => Rule::Items,
        b"instructions" => Rule::Content,
        b"previous_response_id" => Rule::Needs(Capability::StoredResponses),
        b"parallel_tool_calls" | b"reasoning" | b"text" => Rule::Pass,
        _ => return None,
    })
}

fn messages(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"stream" => Rule::Stream,
        b"max_tokens" => Rule::Count(Size::MaxTokens),
        b"metadata" => Rule::Metadata,
        b"container" => Rule::Needs(Capability::ServerTools),
        b"service_tier" => SERVICE_TIERS,
        b"inference_geo" => REGIONS,
        b"stop_sequences" | b"temperature" | b"top_k" | b"top_p" => Rule::Pass,
        _ => return count_tokens(field),
    })
}

fn count_tokens(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"model" => Rule::Model,
        b"messages" => Rule::Items,
        b"system" => Rule::Content,
        b"tools" => Rule::Tools,
        b"tool_choice" => Rule::ToolChoice,
        b"mcp_servers" => Rule::Needs(Capability::Mcp),
        b"cache_control" | b"compaction" | b"context_management" | b"output_config" | b"output_format" => {
            Rule::Pass
        }
        b"speed" => SPEEDS,
        b"thinking" => Rule::Thinking,
        _ => return None,
    })
}

fn embeddings(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"model" => Rule::Model,
        b"input" => Rule::Prompt,
        b"user" => Rule::User,
        b"dimensions" | b"encoding_format" => Rule::Pass,
        _ => return None,
    })
}

/// Returns the rule of a field that chat and completions share.
fn sampling(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"max_tokens" => Rule::Count(Size::MaxTokens),
        b"n" => Rule::Count(Size::N),
        b"frequency_penalty" | b"logit_bias" | b"logprobs" | b"presence_penalty" | b"seed" | b"stop"
        | b"temperature" | b"top_logprobs" | b"top_p" => Rule::Pass,
        _ => return None,
    })
}

/// Returns the rule of a field that chat and responses share.
fn openai_tools(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"tools" => Rule::Tools,
        b"tool_choice" => Rule::ToolChoice,
        // Can name an earlier response to compare with.
        b"prompt_cache_options" => Rule::Content,
        // The key only steers to a cache; a hit needs the same prompt. Dropping it would cost the run money.
        b"parallel_tool_calls" | b"prompt_cache_key" | b"prompt_cache_retention" | b"verbosity" => Rule::Pass,
        b"service_tier" => SERVICE_TIERS,
        _ => return None,
    })
}

/// Returns the rule of a field that all of OpenAI's generating routes share.
fn openai(field: &[u8]) -> Option<Rule> {
    Some(match field {
        b"model" => Rule::Model,
        b"stream" => Rule::Stream,
        b"stream_options" => Rule::StreamOptions,
        b"store" => Rule::Store,
        b"user" => Rule::User,
        b"metadata" => Rule::Metadata,
        b"safety_identifier" => Rule::Drop,
        _ => return None,
    })
}
