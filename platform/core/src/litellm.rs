//! Lists the body fields that LiteLLM interprets as instructions to itself.
//!
//! Such a field chooses where a call goes, with which key, what it is billed at or whether it is logged. No setting and
//! no grant allows one: the configuration refuses them, the rewriting of bodies refuses them, and no advice names them.
//! LiteLLM has some 400 of them (version 1.106.2, `tests/litellm-parameters.txt`). Most belong to families that grow
//! with each version, so a family is listed by the part that its names share.

/// Prefixes of names, one for each family. A leading `_` is LiteLLM's own mark.
const FAMILIES: [&str; 34] = [
    "_",
    "adaptive_router_",
    "anthropic",
    "arize_",
    "auto_router_",
    "aws_",
    "azure",
    "bedrock_",
    "braintrust_",
    "cache_creation_",
    "cache_read_",
    "complexity_router_",
    "dd_",
    "gcs_",
    "humanloop_",
    "langfuse_",
    "langsmith_",
    "litellm",
    "milvus_",
    "mock_",
    "model_",
    "newrelic_",
    "openai_",
    "posthog_",
    "quality_router_",
    "s3_",
    "sagemaker_",
    "signoz_",
    "valkey_",
    "vertex_",
    "wandb_",
    "watsonx_",
    "weave_",
    "user_api_key",
];

/// Parts of names that set a price, a key, an address, a fallback model or a callback.
const PIECES: [&str; 9] = [
    "cost_per_",
    "_cost",
    "api_key",
    "api_base",
    "callback",
    "fallback",
    "guardrail",
    "timeout",
    "credential",
];

/// Names that belong to no family, sorted for a binary search. Some state who makes the call, or that the provider
/// stores it.
const WORDS: [&str; 129] = [
    "acompletion",
    "additional_drop_params",
    "aembedding",
    "agentcore_runtime_session_id",
    "aimg_generation",
    "allm_passthrough_route",
    "allow_client_keepalive_override",
    "allowed_model_region",
    "allowed_openai_params",
    "api_version",
    "applied_policies",
    "assistant_continue_message",
    "async_call",
    "atext_completion",
    "attempted_targets",
    "base_model",
    "base_url",
    "bos_token",
    "bucket_name",
    "budget_duration",
    "cache",
    "cache_key",
    "caching",
    "caching_groups",
    "client",
    "client_id",
    "client_secret",
    "complete_response",
    "completion_call_id",
    "configurable_clientside_auth_params",
    "cooldown_time",
    "custom_llm_provider",
    "custom_prompt_dict",
    "data_residency",
    "deployment_id",
    "deployment_url",
    "disable_add_transform_inline_image_block",
    "drop_params",
    "enable_json_schema_validation",
    "enable_prompt_caching",
    "enable_tag_filtering",
    "enforced_params",
    "ensure_alternating_roles",
    "eos_token",
    "extra_body",
    "extra_headers",
    "fastest_response",
    "final_prompt_value",
    "fireworks_forward_user_id",
    "headers",
    "hf_model_name",
    "id",
    "include_server_side_tool_invocations",
    "itpm",
    "keepalive_seconds",
    "log_client_error_tracebacks",
    "logger_fn",
    "lunary_public_key",
    "max_agentic_loops",
    "max_budget",
    "max_file_size_mb",
    "max_parallel_requests",
    "max_retries",
    "merge_reasoning_content_in_choices",
    "metadata",
    "no-log",
    "num_retries",
    "nvcf_function_id",
    "order",
    "organization",
    "otpm",
    "output_vector_size",
    "policies",
    "preset_cache_key",
    "prompt_environment",
    "prompt_id",
    "prompt_label",
    "prompt_variables",
    "prompt_version",
    "provider_affinity_header",
    "provider_specific_header",
    "proxy_server_request",
    "region_name",
    "regional_endpoint_uplift_multiplier",
    "regional_processing_uplift_multiplier_eu",
    "regional_processing_uplift_multiplier_us",
    "retry_policy",
    "retry_strategy",
    "roles",
    "routing_strategy",
    "rpm",
    "rust",
    "safety_identifier",
    "search_tool_name",
    "secret_fields",
    "self",
    "session_id",
    "shared_session",
    "silent_model",
    "slack_webhook_url",
    "spend_logs_metadata",
    "ssl_verify",
    "store",
    "stream_chunk_size",
    "stream_response",
    "supports_system_message",
    "tag_regex",
    "tags",
    "tenant_id",
    "text_completion",
    "tiered_pricing",
    "tpm",
    "trace_id",
    "ttl",
    "turn_off_message_logging",
    "use_chat_completions_api",
    "use_client",
    "use_in_pass_through",
    "use_litellm_proxy",
    "use_ssl",
    "use_xai_oauth",
    "user",
    "user_config",
    "user_continue_message",
    "user_id",
    "vector_store_id",
    "verbose",
    "weight",
    "workspace_id",
];

/// Returns whether an agent may never set a top-level field of this name.
#[must_use]
pub fn is_control(field: &str) -> bool {
    WORDS.binary_search(&field).is_ok()
        || FAMILIES.iter().any(|family| field.starts_with(family))
        || PIECES.iter().any(|piece| field.contains(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_litellm_is_a_control() {
        let missed: Vec<_> = include_str!("../tests/litellm-parameters.txt")
            .lines()
            .filter(|name| !is_control(name))
            .collect();
        assert!(missed.is_empty(), "{missed:?}");
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn what_models_are_asked_for_is_none() {
        for field in [
            "",
            "colour",
            "chat_template_kwargs",
            "guided_json",
            "top_k",
            "min_p",
            "reasoning",
            "provider",
            "messages",
            "model",
        ] {
            assert!(!is_control(field), "{field}");
        }
    }
}
