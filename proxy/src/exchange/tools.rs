//! Takes a call of a host tool through its phases: its budget, its body, its permission, the tool socket.
//!
//! Identity, freezes, expiry, drain and the journal are those of model calls. Only id, method and the tool's name are
//! read; the body goes on unchanged, and the control plane reads it with the same code.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, request::Parts,
};
use hyper::body::Incoming;
use platform_core::{
    host_tools::{
        EXEC_PATH, MCP_PATH, TOOL_PROTOCOL, ToolOutcome, exec::ExecRequest, header as own, mcp::McpMessage,
    },
    id::ToolName,
    record::{self, Kind, Outcome, Timeout, ToolCall},
    refusal::Refusal,
    route::Route,
    trace::{self, Step},
    untrusted::JournalText,
};
use platform_runtime::report;

use super::{
    admit,
    call::Exchange,
    identify::split_slot,
    rewrite::{self, BodyLimit},
};
use crate::{
    body_memory::BodyPermit,
    clock,
    refusal::{Late, Refused},
    server::{Ingress, Target},
    tool_socket::{Error, ToolAnswer},
};

/// Headers of an agent that the control plane receives.
const PASSED: [HeaderName; 3] =
    [header::CONTENT_TYPE, header::ACCEPT, HeaderName::from_static("mcp-protocol-version")];

/// Head of a tool call, and the route that was found for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCallHead<'h> {
    pub(super) parts: &'h Parts,
    pub(super) path: &'h str,
    pub(super) target: Target,
    pub(super) route: Result<Route, Refusal>,
}

/// Part of a body that decides whether its call may pass.
struct ReadCall {
    /// Tool that the call executes, if it executes one.
    tool: Option<ToolName>,
    /// Id of the JSON-RPC message, as its sender wrote it.
    rpc_id: Option<String>,
}

/// Returns whether a call with this result of its route's search is one of host tools.
pub(super) const fn is_tool_call(route: Result<Route, Refusal>) -> bool {
    match route {
        Ok(route) => route.is_of_tools(),
        Err(refusal) => matches!(refusal, Refusal::MethodNotAllowed),
    }
}

/// Answers a call of a host tool.
pub(super) async fn respond(
    exchange: &mut Exchange,
    ingress: &Ingress,
    head: ToolCallHead<'_>,
    body: &mut Incoming,
) -> Result<Response<Bytes>, Refused> {
    exchange.begin_tool_call(Route::of_post(head.path));
    exchange.pace_tool_call()?;
    admit::check_head(head.parts, head.target)?;
    let route = head.route?;
    let limits = exchange.run().grant.host_tools.limits;
    exchange.admit_tool_call(route)?;
    let mut permit = BodyPermit::empty(
        Arc::clone(&exchange.run().body_memory),
        Arc::clone(&exchange.context().body_memory),
    );
    let limit = BodyLimit { bytes: limits.request_body, setting: "tools.max_request" };
    let body = rewrite::read_plain_body(exchange, &head.parts.headers, body, &mut permit, limit).await?;
    let call = exchange.read_call(route, &body)?;
    let answered = exchange.execute(&call, &head.parts.headers, body).await;
    let answer = answered.map_err(|refused| refused.answering(call.rpc_id))?;
    exchange.note_answer(&answer);
    let body = exchange.mask().cover(answer.body.clone());
    exchange.forwarded(body.len());
    exchange.settle(Outcome::Complete).wait().await;
    Ok(response(answer, body, ingress))
}

/// Returns the response for the agent.
fn response(answer: ToolAnswer, body: Bytes, ingress: &Ingress) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = match answer.status {
        // A gateway would lock its provider for all sessions.
        StatusCode::UNAUTHORIZED
        | StatusCode::PAYMENT_REQUIRED
        | StatusCode::FORBIDDEN
        | StatusCode::TOO_MANY_REQUESTS
            if ingress.serves_gateways() =>
        {
            StatusCode::BAD_REQUEST
        }
        status => status,
    };
    *response.headers_mut() = answer.headers;
    response
}

impl Exchange {
    /// Notes the route of a refused call, if `path` is one of host tools, so that its client gets an answer that it can
    /// read.
    pub(super) fn note_tool_path(&mut self, path: &str) {
        let route = Route::of_post(split_slot(path).1);
        if route.is_of_tools() {
            self.begin_tool_call(route);
        }
    }

    /// Notes that the call is one of host tools.
    fn begin_tool_call(&mut self, route: Route) {
        self.route = route;
        self.connection_state.set_tool_call();
        self.note(|record| {
            record.route = route;
            record.kind = Kind::Tool;
        });
    }

    /// Counts the call against the rate of its run's tool calls, whatever becomes of it.
    fn pace_tool_call(&self) -> Result<(), Refused> {
        Ok(self.run.tool_spending.pace(clock::uptime(self.began))?)
    }

    /// Counts the call as in flight, if run and journal are open. It uses nothing of the limits of model calls.
    fn admit_tool_call(&mut self, route: Route) -> Result<(), Refused> {
        self.open(route)?;
        self.tool_reservation = Some(self.run.tool_spending.enter()?);
        self.trace(|| Step::Admitted { route });
        Ok(())
    }

    /// Reads which tool `body` executes. Refuses one that names another run.
    fn read_call(&mut self, route: Route, body: &[u8]) -> Result<ReadCall, Refused> {
        let invalid = |error: &dyn std::error::Error| {
            Refused::by_rule(Refusal::BodyInvalid, route.word())
                .saying(format!("the body is not a call of a tool: {error}"))
        };
        if route == Route::ToolExec {
            let request = ExecRequest::read(body).map_err(|error| invalid(&error))?;
            self.note_tool(&request.tool, Some(request.args.get()));
            if request.run_id != self.run.grant.run_id {
                return Err(Refusal::RunMismatch.into());
            }
            return Ok(ReadCall { tool: Some(request.tool), rpc_id: None });
        }
        let message = McpMessage::read(body).map_err(|error| invalid(&error))?;
        if let Some(tool) = &message.tool {
            self.note_tool(tool, message.arguments.as_deref());
        }
        Ok(ReadCall { tool: message.tool, rpc_id: message.id })
    }

    fn note_tool(&mut self, tool: &ToolName, args: Option<&str>) {
        let digest = |args: &str| JournalText::of(&String::from_utf8_lossy(&record::hash(args.as_bytes())));
        let call = ToolCall {
            name: JournalText::of(tool.as_str()),
            outcome: ToolOutcome::Denied,
            connection: None,
            args_sha256: args.map(digest),
        };
        self.note(|record| record.tool = Some(Box::new(call)));
    }

    /// Refuses a tool that the run was not granted, and every message of a run without host tools.
    fn check_tool_grant(&self, tool: Option<&ToolName>) -> Result<(), Refused> {
        let granted = &self.run.grant.host_tools;
        match tool {
            Some(tool) if !granted.allows(tool) => {
                Err(Refused::by_rule(Refusal::PolicyDenied, &format!("tool:{tool}")))
            }
            None if granted.is_none() => Err(Refused::by_rule(Refusal::PolicyDenied, "tools")),
            _ => Ok(()),
        }
    }

    /// Passes the call on to the control plane, once.
    async fn execute(
        &mut self,
        call: &ReadCall,
        from: &HeaderMap,
        body: Bytes,
    ) -> Result<ToolAnswer, Refused> {
        self.check_tool_grant(call.tool.as_ref())?;
        let limits = self.run.grant.host_tools.limits;
        let request = self.tool_request(call, from, body)?;
        let context = Arc::clone(&self.context);
        let trusted = Arc::clone(&context.snapshot.load().trusted_uids);
        let connection =
            context.tool_socket.connect(&trusted).await.map_err(|error| self.tool_failure(error))?;
        self.note_outcome(ToolOutcome::Unknown);
        self.mark_in_flight().await.inspect_err(|_error| self.note_outcome(ToolOutcome::Denied))?;
        self.connected(trace::Connection::Fresh);
        let connection_state = self.connection_state.clone();
        match connection_state.within_timeouts(connection.call(request, limits.answer_body)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.tool_failure(error)),
            Err(timeout) => Err(self.tool_timeout(timeout)),
        }
    }

    /// Returns the request for the tool socket: the body as it came, and headers that say which run it belongs to.
    fn tool_request(
        &self,
        call: &ReadCall,
        from: &HeaderMap,
        body: Bytes,
    ) -> Result<Request<Bytes>, Refused> {
        let grant = &self.run.grant;
        let path = if self.route == Route::Mcp { MCP_PATH } else { EXEC_PATH };
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static(path);
        let headers = request.headers_mut();
        for name in PASSED {
            if let Some(value) = from.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        let granted: Vec<_> = grant.host_tools.names.iter().map(ToolName::as_str).collect();
        let mut own_headers = vec![
            ("host", "sluicegate".to_owned()),
            (own::PROTOCOL, TOOL_PROTOCOL.to_string()),
            (own::RUN, grant.run_id.to_string()),
            (own::ATTEMPT, grant.attempt.to_string()),
            (own::ACCOUNT, grant.account.to_string()),
            (own::CALL, self.call_id.to_string()),
            (own::GRANTED, granted.join(",")),
        ];
        own_headers.extend(call.tool.as_ref().map(|tool| (own::TOOL, tool.to_string())));
        for (name, value) in own_headers {
            let value = HeaderValue::try_from(value).map_err(|_error| Refusal::ToolsUnavailable)?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    /// Returns the refusal for a failed call, and notes its outcome.
    fn tool_failure(&mut self, error: Error) -> Refused {
        tracing::warn!(call = %self.call_id, error = report::chain(&error), "a tool call failed");
        match error {
            Error::Unreachable { .. } | Error::Untrusted { .. } | Error::Refused { .. } => {
                self.note_outcome(ToolOutcome::Denied);
                Refusal::ToolsUnavailable.into()
            }
            Error::Broken(_) | Error::Protocol { .. } => Refusal::OutcomeUnknown.into(),
            Error::TooLarge { head, .. } => {
                self.note_answer(&head);
                Refusal::ToolAnswerTooLarge.into()
            }
        }
    }

    fn tool_timeout(&self, timeout: Timeout) -> Refused {
        let limit = self.run.grant.host_tools.limits.call_ms;
        Refused::late(Refusal::ToolTimeout, Late { timeout, limit })
    }

    fn note_outcome(&mut self, outcome: ToolOutcome) {
        self.note(|record| {
            if let Some(tool) = &mut record.tool {
                tool.outcome = outcome;
            }
        });
    }

    /// Notes the answer of the control plane.
    fn note_answer(&mut self, answer: &ToolAnswer) {
        let ttfb = self.elapsed_us();
        self.note(|record| {
            record.status = answer.status.as_u16();
            record.ttfb_us = Some(ttfb);
            if let Some(tool) = &mut record.tool {
                tool.outcome = answer.outcome.unwrap_or(ToolOutcome::Unknown);
                tool.connection.clone_from(&answer.connection);
            }
        });
    }
}
