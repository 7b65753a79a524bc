//! mcp serves the Model Context Protocol: streamable HTTP without sessions, with JSON in answers.
//!
//! The official SDK speaks the protocol. Before it sees a message, this program has read the same bytes, and knows which
//! tool they call, with which arguments. The SDK's own reading of those is not used.

use std::sync::Arc;

use axum::{
    body::Bytes,
    http::{
        HeaderMap, HeaderValue, Request, Response,
        header::{ACCEPT, CONTENT_TYPE, HOST},
        request::Parts,
    },
};
use http_body_util::{Full, combinators::BoxBody};
use platform_core::{
    host_tools::mcp::{InvalidMessage, McpMessage},
    id::ToolName,
};
use platform_runtime::sync::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};

use crate::{
    caller::CallingRun,
    catalog::Catalog,
    catalog_entry::CatalogEntry,
    execute::{Call, Executed, Executor},
    tool::{Effect, ToolCode, ToolError},
};

/// Header with the version of the protocol that the client speaks.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Header that repeats the method of the message.
const METHOD_HEADER: &str = "mcp-method";
/// Header that repeats the name of the tool.
const NAME_HEADER: &str = "mcp-name";
/// Form of answers that each client of the protocol takes.
const ACCEPTED: &str = "application/json, text/event-stream";

/// Server of the protocol. Clones share it.
#[derive(Clone)]
pub(crate) struct McpServer {
    service: StreamableHttpService<McpHandler, LocalSessionManager>,
}

/// Answer to a message, and the call that it executed.
pub(crate) type McpAnswer = (Response<BoxBody<Bytes, std::convert::Infallible>>, Option<Executed>);

/// Message, as this program has read it.
#[derive(Clone)]
struct ReadMessage {
    caller: CallingRun,
    /// Call that the message makes; taken when it is executed.
    call: Arc<Mutex<Option<Call>>>,
    executed: Arc<Mutex<Option<Executed>>>,
}

#[derive(Clone)]
struct McpHandler {
    executor: Executor,
}

impl McpServer {
    pub(crate) fn new(executor: Executor) -> Self {
        let handler = McpHandler { executor };
        // The data plane is the only client, and the socket is closed to all others: there is no host to check.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts();
        let factory = move || Ok(handler.clone());
        Self { service: StreamableHttpService::new(factory, Arc::default(), config) }
    }

    /// Answers a message. A client that leaves drops the future.
    ///
    /// # Errors
    /// If the body is no message that may pass.
    pub(crate) async fn respond(
        &self,
        caller: CallingRun,
        parts: Parts,
        body: Bytes,
    ) -> Result<McpAnswer, InvalidMessage> {
        let message = McpMessage::read(&body)?;
        let headers = protocol_headers(&parts.headers, &message);
        let call = message.tool.map(|tool| {
            let args = message.arguments.unwrap_or_default();
            Call { id: caller.call.clone(), caller: caller.clone(), tool, args }
        });
        let message = ReadMessage { caller, call: Arc::new(Mutex::new(call)), executed: Arc::default() };
        let read = message.clone();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method;
        *request.uri_mut() = parts.uri;
        *request.headers_mut() = headers;
        request.extensions_mut().insert(message);
        let response = self.service.handle(request).await;
        Ok((response, read.outcome()))
    }
}

impl ReadMessage {
    /// Returns the call that the message made, if it makes one.
    fn outcome(&self) -> Option<Executed> {
        let executed = self.executed.lock().take();
        // The SDK did not take the message, so nothing ran.
        let refused = || ToolError::new(ToolCode::InvalidRequest, "the message is no call").into();
        executed.or_else(|| self.call.lock().take().map(|_call| refused()))
    }
}

/// Returns the headers that belong to the protocol. Those that repeat the message are written anew: newer versions of the
/// protocol demand them, and the data plane need not pass them on.
fn protocol_headers(headers: &HeaderMap, message: &McpMessage) -> HeaderMap {
    let mut passed = HeaderMap::new();
    if let Some(version) = headers.get(VERSION_HEADER) {
        passed.insert(VERSION_HEADER, version.clone());
    }
    let tool = message.tool.as_ref().map(ToolName::as_str);
    for (name, value) in [(METHOD_HEADER, Some(message.method.as_str())), (NAME_HEADER, tool)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            passed.insert(name, value);
        }
    }
    passed.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The SDK demands one, also where none is checked.
    passed.insert(HOST, HeaderValue::from_static("localhost"));
    passed.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    passed
}

impl McpHandler {
    /// Returns the tools that the caller may call and that can be used.
    async fn granted(&self, caller: &CallingRun) -> Vec<Tool> {
        let catalog: &Catalog = self.executor.catalog();
        let is_shown =
            |entry: &CatalogEntry| caller.granted.contains(&entry.name) && entry.unavailable.is_none();
        catalog.entries().await.into_iter().filter(is_shown).map(shown).collect()
    }
}

fn shown(entry: CatalogEntry) -> Tool {
    let schema = match entry.schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let annotations = ToolAnnotations::new()
        .read_only(entry.effect == Effect::Reads)
        .idempotent(entry.effect == Effect::Reads)
        // What a third party's tool does is known to its server alone.
        .destructive(entry.server.is_some() && entry.effect == Effect::Writes);
    let name = entry.name.as_str().to_owned();
    Tool::new(name, entry.description, Arc::new(schema)).with_annotations(annotations)
}

fn message_of(context: &RequestContext<RoleServer>) -> Result<ReadMessage, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let message = parts.and_then(|parts| parts.extensions.get::<ReadMessage>()).cloned();
    message.ok_or_else(|| ErrorData::internal_error("the message has no caller", None))
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(rmcp::model::Implementation::new("sluicegate", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let message = message_of(&context)?;
        Ok(ListToolsResult::with_all_items(self.granted(&message.caller).await))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = message_of(&context)?;
        let Some(call) = message.call.lock().take() else {
            return Err(ErrorData::invalid_request("the message calls no tool", None));
        };
        // The SDK runs this in a task of its own, which it cancels when the client leaves.
        let executed = context.ct.run_until_cancelled(self.executor.execute(call)).await;
        let executed =
            executed.unwrap_or_else(|| ToolError::new(ToolCode::Cancelled, "the client has left").into());
        let result = answer(&executed);
        *message.executed.lock() = Some(executed);
        Ok(result.into())
    }
}

/// Returns the answer to a call. Its failure is a result that a model reads, and none of the protocol.
fn answer(executed: &Executed) -> CallToolResult {
    match &executed.result {
        Ok(value) if value.is_object() => CallToolResult::structured(value.clone()),
        Ok(value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
        Err(error) => {
            let mut result =
                CallToolResult::error(vec![ContentBlock::text(format!("{}: {}", error.code, error.message))]);
            result.structured_content =
                Some(json!({ "error": { "code": error.code, "message": error.message } }));
            result
        }
    }
}
