//! Defines the messages of refusals to a person.

use platform_core::{limit::Millis, record::Timeout, refusal::Refusal};

/// Returns the message of a refusal to a person.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) const fn message(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::RouteUnknown => {
            "no such route: this is a model API with POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages and /v1/embeddings, routes below some of these, and GET /v1/models"
        }
        Refusal::MethodNotAllowed => {
            "host tools are called with POST alone: there are no sessions and no streams"
        }
        Refusal::WebsocketUnsupported => "this route has no WebSocket: send the call as a POST over HTTP",
        Refusal::BodyTooLarge => "the request body is larger than this run may send",
        Refusal::BodyInvalid => "the body is not one complete JSON object as this route takes it",
        Refusal::UpstreamRefused => {
            "the model service did not take the request; its reason is in the gateway's journal"
        }
        Refusal::UpstreamBusy => "the model service is overloaded; send the request again in a moment",
        // These words make OpenClaw shorten the conversation.
        Refusal::ContextOverflow => "the request is longer than the model's maximum context length",
        Refusal::HeadInvalid => {
            "the head must have one Host, and either one Content-Length or Transfer-Encoding: chunked"
        }
        Refusal::HeadTooLarge => "the head is larger than this gateway takes",
        Refusal::HeadTooSlow => {
            "the head did not come whole in the time that the gateway's setting proxy.header_read_timeout allows"
        }
        Refusal::BodyTooSlow => "the body arrived below the run's minimum rate",
        Refusal::TooManyConnections => "the limit of open connections is reached; close those that are idle",
        Refusal::BodyEncoded => {
            "the body's content-encoding cannot be read: send it plain, or as one gzip member or one zstd frame"
        }
        Refusal::FieldUnknown => "the body has a field that this route does not take",
        Refusal::NotGranted => "the body asks for something not granted to this run",
        Refusal::ModelNotGranted => {
            "the model is not granted to this run; GET /v1/models lists those that are"
        }
        Refusal::TokenMissing => "no run token: send it as X-Run-Token or as the API key",
        Refusal::TokenMalformed => {
            "the run token is malformed: it has the form run|attempt|expiry.signature, sent once"
        }
        Refusal::TokenExpired => "the run token has run out; mint a new one",
        Refusal::TokenInvalid => {
            "the run token is not signed for this attempt of the run with a secret known here"
        }
        Refusal::TokenRevoked => "the tokens of this run were revoked",
        Refusal::RunUnknown => "the run token is for a run that is not open on this listener",
        Refusal::IdentityConflict => "the call carries two conflicting identities",
        Refusal::Unattributed => "the call cannot be attributed to a run",
        Refusal::BodyMemoryExhausted => {
            "too many large requests are in progress; send this one again in a moment"
        }
        Refusal::RateLimited => "calls come faster than this run or account may make them",
        Refusal::ConcurrencyLimited => "this run or account has as many calls in progress as it may have",
        Refusal::QuotaReserved => {
            "the rest of a limit of this run or account is reserved for calls in progress"
        }
        Refusal::QuotaExhausted => "a limit of this run or account is used up",
        // Words that OpenClaw takes as final, and that lock no provider.
        Refusal::BalanceExhausted => "the balance of this account is below its floor",
        Refusal::ModelUnpriced => {
            "this run or account has a limit of money, and the model has no price: its operator has to set one"
        }
        Refusal::RunDeadlineExceeded => "the time of this run is up",
        Refusal::Frozen => "calls of this account or model are stopped until an operator allows them again",
        Refusal::RunClosed => "this run is closed and takes no more calls",
        Refusal::Draining => "the gateway is restarting",
        Refusal::JournalUnavailable => "the gateway cannot record calls at the moment",
        Refusal::UpstreamUnreachable => "the model service cannot be reached",
        Refusal::UpstreamUnavailable => {
            "the model service cannot be reached at the moment; calls pass again as soon as it is back"
        }
        Refusal::UpstreamReset => {
            "the model service closed the connection before a byte of its answer; the request may be sent again"
        }
        Refusal::UpstreamFailed => {
            "the model service broke off in its answer, or gave one that cannot be read"
        }
        Refusal::UpstreamTimeout => "the model service did not answer in the time this run allows",
        Refusal::UpstreamAuth => {
            "the model service does not accept the gateway's own access; its operator must fix that"
        }
        Refusal::PolicyDenied => "this run was not granted that host tool",
        Refusal::RunMismatch => "the call names another run than the one that makes it",
        Refusal::ToolsUnavailable => {
            "host tools are unavailable; nothing was executed, and model calls go on"
        }
        Refusal::ToolTimeout => {
            "the host tool did not end in the time this run allows; it may have had its effect"
        }
        Refusal::OutcomeUnknown => {
            "the call was sent, and how it ended is unknown: the host tool may have had its effect; the call is not repeated"
        }
        Refusal::ToolAnswerTooLarge => {
            "the host tool has run, and its answer is larger than this run may receive"
        }
    }
}

/// A timeout that has passed, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) timeout: Timeout,
    pub(crate) limit: Millis,
}

impl Late {
    /// Returns a message that names the timeout, its length and its setting.
    pub(super) fn message(self) -> String {
        let Self { timeout, limit } = self;
        let what = match timeout {
            Timeout::Body => "the request's body came too slowly for",
            Timeout::Connect => "there was no connection to the model service within",
            Timeout::Tls => "the connection to the model service was not secured within",
            Timeout::FirstByte => "the model service did not begin its answer within",
            Timeout::BetweenBytes => "the model service was silent in the middle of its answer for",
            Timeout::Client => "nothing of the answer was taken for",
            Timeout::Call => "the call was not complete within",
        };
        let whose = match timeout {
            Timeout::Connect => "the gateway's setting upstream.connect_timeout".to_owned(),
            Timeout::Tls => "the gateway's setting upstream.tls_handshake_timeout".to_owned(),
            _ => format!("the limit {} of this run", timeout.word()),
        };
        format!("{what} {limit}, {whose}")
    }
}
