//! Lists the routes that Sluicegate knows: those of the model API, and those of host tools.

use serde::{Deserialize, Serialize};

/// Path of the specification's own form of a tool call (*specified*).
pub const EXEC_PATH: &str = "/tool/exec";
/// Path of the Model Context Protocol, as streamable HTTP without sessions.
pub const MCP_PATH: &str = "/mcp";

/// Route of a call, as the journal and the metrics name it. Any path that is not on this list does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// `POST /v1/chat/completions`
    ChatCompletions,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/responses`
    Responses,
    /// `POST /v1/responses/input_tokens`
    InputTokens,
    /// `POST /v1/responses/compact`, in which a model shortens a conversation.
    Compact,
    /// `POST /v1/messages` (Anthropic)
    Messages,
    /// `POST /v1/messages/count_tokens` (Anthropic)
    CountTokens,
    /// `POST /v1/embeddings`
    Embeddings,
    /// `GET /v1/models`, answered from the grant and never forwarded.
    Models,
    /// `POST /tool/exec`, a call of a host tool.
    ToolExec,
    /// `POST /mcp`, a message of the Model Context Protocol about host tools.
    Mcp,
    /// Any other path.
    Unknown,
}

/// Provider that sets the conventions of a route's errors and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `{"error":{…}}`; streams end with `data: [DONE]`.
    OpenAi,
    /// `{"type":"error","error":{…}}`; streams end with a `message_stop` event.
    Anthropic,
    /// `{"ok":false,"error":{"code","message"}}`, of `POST /tool/exec`.
    ToolExec,
    /// Errors of JSON-RPC 2.0, of `POST /mcp`.
    JsonRpc,
}

impl Route {
    /// All routes, for tables and tests, in the order in which they are declared.
    pub const ALL: [Self; 12] = [
        Self::ChatCompletions,
        Self::Completions,
        Self::Responses,
        Self::InputTokens,
        Self::Compact,
        Self::Messages,
        Self::CountTokens,
        Self::Embeddings,
        Self::Models,
        Self::ToolExec,
        Self::Mcp,
        Self::Unknown,
    ];

    /// Returns the word that the journal and the metrics write.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::InputTokens => "input_tokens",
            Self::Compact => "compact",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Embeddings => "embeddings",
            Self::Models => "models",
            Self::ToolExec => "tool_exec",
            Self::Mcp => "mcp",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the route of a POST to exactly `path`.
    #[must_use]
    pub fn of_post(path: &str) -> Self {
        match path {
            "/v1/chat/completions" => Self::ChatCompletions,
            "/v1/completions" => Self::Completions,
            "/v1/responses" => Self::Responses,
            "/v1/responses/input_tokens" => Self::InputTokens,
            "/v1/responses/compact" => Self::Compact,
            "/v1/messages" => Self::Messages,
            "/v1/messages/count_tokens" => Self::CountTokens,
            "/v1/embeddings" => Self::Embeddings,
            EXEC_PATH => Self::ToolExec,
            MCP_PATH => Self::Mcp,
            _ => Self::Unknown,
        }
    }

    /// Returns the path at the upstream that a call is forwarded to, never the client's own text; `None` if the
    /// upstream does not have the route.
    #[must_use]
    pub const fn upstream_path(self) -> Option<&'static str> {
        match self {
            Self::ChatCompletions => Some("/v1/chat/completions"),
            Self::Completions => Some("/v1/completions"),
            Self::Responses => Some("/v1/responses"),
            Self::InputTokens => Some("/v1/responses/input_tokens"),
            Self::Compact => Some("/v1/responses/compact"),
            Self::Messages => Some("/v1/messages"),
            Self::CountTokens => Some("/v1/messages/count_tokens"),
            Self::Embeddings => Some("/v1/embeddings"),
            Self::Models | Self::ToolExec | Self::Mcp | Self::Unknown => None,
        }
    }

    /// Returns whether a model answers the calls of this route, and so uses tokens.
    #[must_use]
    pub const fn costs_tokens(self) -> bool {
        match self {
            Self::ChatCompletions
            | Self::Completions
            | Self::Responses
            | Self::Compact
            | Self::Messages
            | Self::Embeddings => true,
            Self::InputTokens
            | Self::CountTokens
            | Self::Models
            | Self::ToolExec
            | Self::Mcp
            | Self::Unknown => false,
        }
    }

    /// Returns whether the route is one of host tools: its calls go to the tool socket, and not to the upstream.
    #[must_use]
    pub const fn is_of_tools(self) -> bool {
        matches!(self, Self::ToolExec | Self::Mcp)
    }

    /// Returns whether the route's `input` is a list of items of the Responses API.
    #[must_use]
    pub const fn takes_items(self) -> bool {
        matches!(self, Self::Responses | Self::InputTokens | Self::Compact)
    }

    /// Returns the dialect of the route's errors and streams.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
            Self::ToolExec => Dialect::ToolExec,
            Self::Mcp => Dialect::JsonRpc,
            Self::ChatCompletions
            | Self::Completions
            | Self::Responses
            | Self::InputTokens
            | Self::Compact
            | Self::Embeddings
            | Self::Models
            | Self::Unknown => Dialect::OpenAi,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_the_journal_writes() {
        for (at, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_string(&route).unwrap(), format!("\"{}\"", route.word()));
            assert_eq!(route as usize, at, "{route:?} stands where it is declared");
        }
    }

    #[test]
    fn only_exact_paths_are_routes() {
        let of_tools = ["/tool/exec", "/mcp"].map(Route::of_post);
        assert_eq!(of_tools, [Route::ToolExec, Route::Mcp]);
        assert!(of_tools.iter().all(|route| route.is_of_tools() && route.upstream_path().is_none()));
        for path in [
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
            "/v1/responses/input_tokens",
            "/v1/responses/compact",
            "/v1/messages",
            "/v1/messages/count_tokens",
            "/v1/embeddings",
        ] {
            assert_eq!(Route::of_post(path).upstream_path(), Some(path));
        }
        for path in [
            "/v1/chat/completions/",
            "//v1/messages",
            "/v1/responses/compact/",
            "/v1/responses/resp_1",
            "/v1/responses/input_items",
            "/v1/../v1/messages",
            "/v1/%6dessages",
            "/V1/messages",
            "/key/list",
            "/mcp/",
            "/MCP",
            "/tool/exec/",
            "/tool//exec",
            "/v1/mcp",
            "/v1/files",
        ] {
            assert_eq!(Route::of_post(path), Route::Unknown, "{path}");
        }
    }
}
