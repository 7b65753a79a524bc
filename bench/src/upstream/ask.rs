//! Reads the parts of a request that a script needs, for any API. It does not validate the rest. A test decides whether
//! a request should have passed, and the ledger has its bytes.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::api::Api;

/// Prefix of the names of scripts.
const SCRIPTED: &str = "fake";
/// Fields that OpenAI repeats in every answer of `/v1/responses`, and that Sluicegate leaves as the agent wrote them.
const ECHOED: [&str; 7] =
    ["instructions", "metadata", "reasoning", "text", "tool_choice", "tools", "truncation"];

/// Roles and types of turns and parts that hold the result of a tool.
const RESULTS: [&str; 4] = ["tool", "tool_result", "function_call_output", "custom_tool_call_output"];

/// Body of a request and the API it came in by.
pub(super) struct Ask {
    pub(super) api: Api,
    pub(super) model: String,
    body: Value,
}

/// Reason why a body is not a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    #[error("the body has no `model`")]
    NoModel,
}

impl Ask {
    pub(super) fn read(api: Api, body: &[u8]) -> Result<Self, AskError> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| AskError::NotJson(error.to_string()))?;
        let model = body.get("model").and_then(Value::as_str).ok_or(AskError::NoModel)?.to_owned();
        Ok(Self { api, model, body })
    }

    /// Returns the script's name: the model's, or the last `[fake…]` in the last user message. The message selects the
    /// script where a gateway in between only accepts names of real models.
    pub(super) fn script(&self) -> Cow<'_, str> {
        if self.model.starts_with(SCRIPTED) {
            return Cow::from(&self.model);
        }
        let text = self.last_user_text();
        let named = text.rsplit('[').find_map(|piece| piece.split_once(']').map(|(name, _)| name));
        named
            .filter(|name| name.starts_with(SCRIPTED))
            .map_or(Cow::from(&self.model), |name| name.to_owned().into())
    }

    /// Returns the fields of the request that an answer of `/v1/responses` repeats.
    pub(super) fn echoes(&self) -> Map<String, Value> {
        let field = |name: &&str| Some(((*name).to_owned(), self.field(name)?.clone()));
        ECHOED.iter().filter_map(field).collect()
    }

    /// Returns whether the answer is streamed, which embeddings never are.
    pub(super) fn is_streamed(&self) -> bool {
        !matches!(self.api, Api::Embeddings | Api::Compact)
            && self.body.get("stream").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn wants_usage_chunk(&self) -> bool {
        self.body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns whether the request offers any tool.
    pub(super) fn offers_tools(&self) -> bool {
        self.field("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
    }

    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.body.get(name)
    }

    /// Returns the bytes of all text in the prompt: instructions and messages, without roles, tools and media.
    pub(super) fn prompt_bytes(&self) -> usize {
        let fields = self.prompt_fields().iter().filter_map(|name| self.field(name));
        fields.flat_map(texts).map(str::len).sum()
    }

    /// Returns the text of the last message with the role `user`, or of the last piece of a prompt without roles.
    pub(super) fn last_user_text(&self) -> String {
        let Some(prompt) = self.prompt_fields().last().and_then(|name| self.field(name)) else {
            return String::new();
        };
        let turns = prompt.as_array().map_or(std::slice::from_ref(prompt), Vec::as_slice);
        let by_user = |turn: &&Value| turn.get("role").is_none_or(|role| role == "user");
        turns.iter().rfind(by_user).map(|turn| texts(turn).concat()).unwrap_or_default()
    }

    /// Returns all turns of a conversation: role, or else the type, and text.
    pub(super) fn turns(&self) -> impl DoubleEndedIterator<Item = (&str, String)> {
        self.prompt_turns().iter().map(|turn| {
            let name = ["role", "type"].iter().find_map(|name| turn.get(*name)?.as_str());
            (name.unwrap_or_default(), texts(turn).concat())
        })
    }

    /// Returns the number of results of tools from turn `first` on. Anthropic's API has them as parts of user messages.
    pub(super) fn results_since(&self, first: usize) -> usize {
        let is_result = |turn: &&Value| {
            let names = ["role", "type"].iter().filter_map(|name| turn.get(*name)?.as_str());
            names.into_iter().any(|name| RESULTS.contains(&name))
        };
        let parts = |turn: &Value| turn.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
        let turns = self.prompt_turns().iter().skip(first);
        turns.map(|turn| usize::from(is_result(&turn)) + parts(turn).iter().filter(is_result).count()).sum()
    }

    /// Returns the turns of a conversation; none if the prompt has no turns.
    fn prompt_turns(&self) -> &[Value] {
        let prompt = self.prompt_fields().last().and_then(|name| self.field(name));
        prompt.and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the fields that hold the prompt, the user's latest text last.
    fn prompt_fields(&self) -> &'static [&'static str] {
        match self.api {
            Api::Chat => &["messages"],
            Api::Completions => &["prompt"],
            Api::Responses | Api::Compact => &["instructions", "input"],
            Api::Messages => &["system", "messages"],
            Api::Embeddings => &["input"],
        }
    }
}

/// Returns the text in a message, an item, a part, or a list of such.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            ["content", "text"].iter().filter_map(|name| fields.get(*name)).flat_map(texts).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_prompt_is_found_in_every_api() {
        let parts = json!([{ "type": "text", "text": "one " }, { "type": "image_url", "image_url": {} },
            { "type": "text", "text": "two" }]);
        let table = [
            (
                Api::Chat,
                json!({"messages": [{ "role": "system", "content": "be" }, { "role": "user", "content": parts },
                { "role": "assistant", "content": null }]}),
                9,
                "one two",
            ),
            (Api::Chat, json!({}), 0, ""),
            (Api::Completions, json!({"prompt": "äöü"}), 6, "äöü"),
            (Api::Completions, json!({"prompt": ["a", "bc"]}), 3, "bc"),
            (Api::Responses, json!({"instructions": "be", "input": "hi"}), 4, "hi"),
            (
                Api::Responses,
                json!({"input": [{ "role": "user", "content": [{ "type": "input_text", "text": "hey" }]},
                { "role": "assistant", "content": "ho" }]}),
                5,
                "hey",
            ),
            (
                Api::Messages,
                json!({"system": [{ "type": "text", "text": "be" }],
                "messages": [{ "role": "user", "content": "yo" }]}),
                4,
                "yo",
            ),
            (Api::Embeddings, json!({"input": [[1, 2], "abc"]}), 3, "abc"),
        ];
        for (api, mut body, bytes, last) in table {
            body["model"] = "fake".into();
            let ask = Ask::read(api, body.to_string().as_bytes()).unwrap();
            assert_eq!((ask.prompt_bytes(), ask.last_user_text().as_str()), (bytes, last), "{body}");
        }
    }

    #[test]
    fn a_real_name_has_its_script_in_the_prompt() {
        let table = [
            ("fake-words5", "Say [fake-tools].", "fake-words5"),
            ("gpt-5", "Say [this] and [fake-words5].", "fake-words5"),
            ("gpt-5", "Say [fake-words5] or [that].", "gpt-5"),
            ("gpt-5", "Say hello.", "gpt-5"),
        ];
        for (model, input, script) in table {
            let body = json!({ "model": model, "input": input }).to_string();
            assert_eq!(Ask::read(Api::Responses, body.as_bytes()).unwrap().script(), script, "{body}");
        }
    }

    #[test]
    fn a_body_without_a_model_asks_for_nothing() {
        assert!(matches!(Ask::read(Api::Chat, b"{"), Err(AskError::NotJson(_))));
        assert!(matches!(Ask::read(Api::Chat, br#"{"model":7}"#), Err(AskError::NoModel)));
    }
}
