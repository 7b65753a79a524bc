//! Builds the requests of all workloads.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Secret that signs run tokens.
pub(crate) const TOKEN_SECRET: &str = "bench-secret-0123456789";

/// Models that a run may name: those of all workloads, and the scripted upstream's.
pub(crate) const MODELS: [&str; 9] = [
    "fast",
    "fast-agent",
    "fast-events20-gap5ms",
    "fast-events50-gap20ms",
    "fast-events64",
    "fast-hold200ms",
    "fast-hold600000ms",
    "fake",
    "gpt-4o-mini",
];

/// Number of tools that an agent's request offers.
const TOOLS: usize = 30;
/// Number of messages of an agent's conversation.
const MESSAGES: usize = 50;

/// Returns a chat request with a body of `bytes` bytes; `model` selects the fast upstream's answer.
#[must_use]
pub fn chat(model: &str, bytes: usize) -> Arc<[u8]> {
    let stream = model.contains("events");
    let start = format!(
        "{{\"model\":\"{model}\",\"stream\":{stream},\"messages\":[{{\"role\":\"user\",\"content\":\""
    );
    let end = "\"}]}";
    let filler = "hello world ".chars().cycle().take(bytes.saturating_sub(start.len() + end.len()));
    let body: String = start.chars().chain(filler).chain(end.chars()).collect();
    request("x-stainless-lang: python\r\n", &body)
}

/// Returns the request of an agent in the middle of its work: 50 messages, 30 tools, 20 headers.
#[must_use]
pub fn agent() -> Arc<[u8]> {
    let messages: Vec<String> = (0..MESSAGES).map(message).collect();
    let tools: Vec<String> = tools().iter().map(|name| tool(name)).collect();
    let body = format!(
        "{{\"model\":\"fast-agent\",\"stream\":false,\"temperature\":0.2,\"max_tokens\":4096,\"messages\":[{}],\
         \"tools\":[{}],\"tool_choice\":\"auto\",\"parallel_tool_calls\":true}}",
        messages.join(","),
        tools.join(",")
    );
    request(
        "accept-encoding: gzip, deflate\r\naccept-language: *\r\nsec-fetch-mode: cors\r\n\
         x-stainless-lang: js\r\nx-stainless-package-version: 5.23.2\r\nx-stainless-os: Linux\r\n\
         x-stainless-arch: x64\r\nx-stainless-runtime: node\r\nx-stainless-runtime-version: v22.19.0\r\n\
         x-stainless-retry-count: 0\r\nx-stainless-timeout: 600\r\nx-request-source: agent\r\n\
         traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n",
        &body,
    )
}

/// Returns the names of the tools that an agent offers.
#[must_use]
pub(crate) fn tools() -> Vec<String> {
    (0..TOOLS).map(|number| format!("workspace_tool_{number:02}")).collect()
}

/// Returns the same request with another run's token.
#[must_use]
pub(crate) fn of_run(request: &[u8], run: &str) -> Arc<[u8]> {
    let at = memchr::memmem::find(request, b"x-run-token: ").map_or(0, |at| at + "x-run-token: ".len());
    let end = memchr::memchr(b'\r', &request[at..]).map_or(at, |length| at + length);
    [&request[..at], token(run).as_bytes(), &request[end..]].concat().into()
}

fn request(headers: &str, body: &str) -> Arc<[u8]> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:8080\r\ncontent-type: application/json\r\n\
         accept: application/json\r\nuser-agent: OpenAI/Python 2.54.0\r\nauthorization: Bearer sandbox\r\n\
         {headers}x-run-token: {}\r\ncontent-length: {}\r\n\r\n{body}",
        token("bench"),
        body.len()
    )
    .into_bytes()
    .into()
}

/// Returns the token of a run's attempt 0, valid until 2286. Peers that check none receive it too.
fn token(run: &str) -> String {
    let claims = format!("{run}|0|9999999999");
    let keyed = Hmac::<Sha256>::new_from_slice(TOKEN_SECRET.as_bytes());
    let tag = keyed.map(|keyed| keyed.chain_update(&claims).finalize().into_bytes());
    format!("{claims}.{}", URL_SAFE_NO_PAD.encode(tag.unwrap_or_default()))
}

/// Returns a message of the conversation: the task, then the agent's calls and what the tools printed, in turns.
fn message(number: usize) -> String {
    let printed =
        "fn main() {\\n    let path = \\\"src/lib.rs\\\";\\n    println!(\\\"{path}\\\");\\n}\\n".repeat(8);
    let tool = format!("workspace_tool_{:02}", number % TOOLS);
    match number {
        0 => format!("{{\"role\":\"system\",\"content\":\"{}\"}}", "You are a careful engineer. ".repeat(40)),
        1 => "{\"role\":\"user\",\"content\":\"Find out why the test fails, and fix it.\"}".to_owned(),
        _ if number.is_multiple_of(2) => format!(
            "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"call_{number}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"{tool}\",\"arguments\":\"{{\\\"path\\\":\\\"src/file_{number}.rs\\\"}}\"}}}}]}}"
        ),
        _ => format!(
            "{{\"role\":\"tool\",\"tool_call_id\":\"call_{}\",\"content\":\"{printed}\"}}",
            number - 1
        ),
    }
}

fn tool(name: &str) -> String {
    format!(
        "{{\"type\":\"function\",\"function\":{{\"name\":\"{name}\",\"description\":\"Reads or changes a file of the \
         workspace. The path is relative to its root; \\\"..\\\" is refused.\",\"parameters\":{{\"type\":\"object\",\
         \"properties\":{{\"path\":{{\"type\":\"string\",\"description\":\"Path of the file\"}},\"lines\":{{\"type\":\
         \"array\",\"items\":{{\"type\":\"integer\"}}}},\"text\":{{\"type\":\"string\"}}}},\"required\":[\"path\"],\
         \"additionalProperties\":false}}}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_and_body(request: &[u8]) -> [String; 2] {
        let text = String::from_utf8(request.to_vec()).unwrap();
        let parts = text.split_once("\r\n\r\n").unwrap();
        [parts.0.to_owned(), parts.1.to_owned()]
    }

    #[test]
    fn an_agents_request_is_as_large_as_a_real_one() {
        let [head, body] = head_and_body(&agent());
        assert_eq!(head.lines().count() - 1, 20, "{head}");
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["messages"].as_array().unwrap().len(), 50);
        assert_eq!(value["tools"].as_array().unwrap().len(), 30);
        assert!((30_000..60_000).contains(&body.len()), "{} bytes", body.len());
    }

    #[test]
    fn another_runs_request_differs_in_its_token() {
        let own = chat("fast", 1024);
        let [head, body] = head_and_body(&of_run(&own, "run-7"));
        assert!(head.contains("\r\nx-run-token: run-7|0|9999999999."), "{head}");
        assert_eq!(body, head_and_body(&own)[1]);
        assert_eq!(of_run(&own, "bench"), own);
    }

    #[test]
    fn a_token_is_what_the_product_mints() {
        assert_eq!(token("bench"), "bench|0|9999999999.9kybMqZPzJIUsAIrJIDBg9fZy5TGtiMswPM9u5upHVA");
    }
}
