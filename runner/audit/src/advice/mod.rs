//! Explains the rule that decided a refusal, and names the settings and commands that would change the decision.
//!
//! The explanation is for operators who read the journal. The data plane's answer to the agent says less.

mod ended;
mod passed;
mod tools;

use platform_core::{
    budget::Limit,
    capability::Capability,
    id::RunId,
    litellm,
    record::{ExchangeRecord, Identity, Timeout},
    refusal::Refusal,
};
use serde::Serialize;

/// Explanation of a refusal, with remedies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Reason in a sentence.
    pub why: String,
    /// Commands that would change the decision, or show more of it. `N` and `DOLLARS` stand for values that the
    /// operator chooses.
    pub commands: Vec<String>,
    /// Settings that would change the decision for good.
    pub settings: Vec<Setting>,
}

/// Setting to change, and the value that it would need, if that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Heading of the section in TOML, such as `accounts."acct-7"`.
    pub section: String,
    /// Key of the setting in that section, such as `max_connections`.
    pub key: &'static str,
    /// Value to add or to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Parsed rule of a record: the limit, field or name that decided the refusal.
#[derive(Debug, Clone, Copy)]
enum Rule<'r> {
    Run(Limit),
    Account(Limit),
    Field(&'r str),
    Model(&'r str),
    Capability(&'r str),
    Tool(&'r str),
    /// A limit of calls of host tools.
    ToolLimit(&'r str),
    /// Any other rule. A freeze has `all`, `account` or `model`.
    Other(&'r str),
    None,
}

impl<'r> Rule<'r> {
    fn of(record: &'r ExchangeRecord) -> Self {
        let Some(rule) = record.rule.as_ref().map(|rule| rule.as_str()) else { return Self::None };
        let limit = |name: &str| Limit::ALL.into_iter().find(|limit| limit.setting() == name);
        match (rule.split_once('.'), rule.split_once(':')) {
            (Some(("run", name)), _) if limit(name).is_some() => limit(name).map_or(Self::None, Self::Run),
            (Some(("account", name)), _) if limit(name).is_some() => {
                limit(name).map_or(Self::None, Self::Account)
            }
            (Some(("tools", name)), _) => Self::ToolLimit(name),
            (_, Some(("field", name))) => Self::Field(name),
            (_, Some(("model", name))) => Self::Model(name),
            (_, Some(("capability", name))) => Self::Capability(name),
            (_, Some(("tool", name))) => Self::Tool(name),
            _ => Self::Other(rule),
        }
    }
}

/// Returns the explanation of `record`'s refusal, of an upstream's error that the client received, or of an answer that broke
/// off or was cut at its limit; `None` for any other call.
pub fn of(record: &ExchangeRecord) -> Option<Advice> {
    let call = AdvisedCall { record };
    let Some(refusal) = record.refusal else { return call.explain_answered() };
    let rule = Rule::of(record);
    Some(match refusal {
        Refusal::RouteUnknown
        | Refusal::WebsocketUnsupported
        | Refusal::HeadInvalid
        | Refusal::HeadTooLarge
        | Refusal::HeadTooSlow
        | Refusal::BodyTooSlow
        | Refusal::TooManyConnections
        | Refusal::BodyInvalid
        | Refusal::BodyEncoded
        | Refusal::BodyTooLarge
        | Refusal::BodyMemoryExhausted => call.explain_request(refusal, rule),
        Refusal::FieldUnknown | Refusal::NotGranted | Refusal::ModelNotGranted => {
            call.explain_request(refusal, rule).noting_other_reasons()
        }
        Refusal::TokenMissing
        | Refusal::TokenMalformed
        | Refusal::TokenExpired
        | Refusal::TokenInvalid
        | Refusal::TokenRevoked
        | Refusal::RunUnknown
        | Refusal::IdentityConflict
        | Refusal::Unattributed => call.explain_identity(refusal),
        Refusal::RateLimited
        | Refusal::ConcurrencyLimited
        | Refusal::QuotaReserved
        | Refusal::QuotaExhausted
        | Refusal::ModelUnpriced => call.explain_limit(refusal, rule),
        Refusal::RunDeadlineExceeded
        | Refusal::BalanceExhausted
        | Refusal::Frozen
        | Refusal::RunClosed
        | Refusal::Draining
        | Refusal::JournalUnavailable => call.explain_stop(refusal, rule),
        Refusal::MethodNotAllowed
        | Refusal::PolicyDenied
        | Refusal::RunMismatch
        | Refusal::ToolsUnavailable
        | Refusal::ToolTimeout
        | Refusal::OutcomeUnknown
        | Refusal::ToolAnswerTooLarge => call.explain_tools(refusal, rule),
        Refusal::UpstreamUnavailable
        | Refusal::UpstreamUnreachable
        | Refusal::UpstreamReset
        | Refusal::UpstreamFailed
        | Refusal::UpstreamTimeout
        | Refusal::UpstreamAuth
        | Refusal::UpstreamRefused
        | Refusal::UpstreamBusy
        | Refusal::ContextOverflow => call.explain_upstream(refusal),
    })
}

/// Record of a call that was refused or cut.
#[derive(Debug, Clone, Copy)]
struct AdvisedCall<'r> {
    record: &'r ExchangeRecord,
}

impl AdvisedCall<'_> {
    /// Returns whether the answer ended at its limit of tokens. Each model API has its own word for that.
    fn is_cut(self) -> bool {
        const WORDS: [&str; 3] = ["length", "max_tokens", "max_output_tokens"];
        self.record.finish_reason.as_ref().is_some_and(|reason| WORDS.contains(&reason.as_str()))
    }

    /// Explains an answer that was cut. The journal does not have the limit that the client asked for.
    fn explain_cut(self) -> Advice {
        let tokens = self.record.tokens.output;
        explain(&format!(
            "the answer ended at its limit, after {tokens} tokens; if the client asked for more, the proxy lowered it to this setting"
        ))
        .setting(&self.agent_section(), "output_tokens_per_call", None)
    }

    /// Explains a request that is never allowed, or not allowed for this run.
    fn explain_request(self, refusal: Refusal, rule: Rule<'_>) -> Advice {
        let in_field = match rule {
            Rule::Field(name) => format!(", in its field {name}"),
            _ => String::new(),
        };
        match (refusal, rule) {
            (Refusal::RouteUnknown, _) => explain("the model API does not have the route of this call; no setting adds one"),
            (Refusal::WebsocketUnsupported, _) => explain("the client asked for a WebSocket, and the model API has none; clients like Codex go on over HTTP by themselves"),
            (Refusal::HeadInvalid, _) => explain("the head can be read in two ways (RFC 9112); the client has to send another"),
            (Refusal::HeadTooLarge, _) => explain("the head is larger than any SDK sends; the client has to send a smaller one"),
            (Refusal::HeadTooSlow, _) => {
                explain("the head did not come in time, or other heads needed its memory")
                    .setting("proxy", "header_read_timeout", None)
                    .setting("proxy", "max_header_memory", None)
            }
            (Refusal::BodyTooSlow, _) => explain("the body arrived below the minimum rate of the run's grant")
                .setting(&self.agent_section(), "request_body_timeout", None)
                .setting(&self.agent_section(), "min_request_body_rate", None),
            (Refusal::TooManyConnections, _) => explain("there were as many connections as there may be")
                .setting("proxy", "max_connections", None)
                .setting("proxy", "max_connections_per_run", None)
                .setting("proxy", "max_shared_connections", None),
            (Refusal::BodyEncoded, _) => explain("the body's encoding could not be read; the client can send it plain, or once encoded as gzip or zstd"),
            (Refusal::BodyTooLarge, _) => {
                explain("the body is larger than the run's grant takes: `limits.request_body`, which the client that registers the run sets")
            }
            (Refusal::BodyMemoryExhausted, _) => explain("the request bodies in flight fill the memory reserved for them")
                .setting("proxy", "max_body_memory_per_run", None)
                .setting("proxy", "max_body_memory", None),
            (Refusal::FieldUnknown, Rule::Field(name)) if litellm::is_control(name) => {
                explain(&format!("the body has the field {name}, which LiteLLM takes as an order to itself; it never passes, and no setting changes that"))
            }
            (Refusal::FieldUnknown, Rule::Field(name)) => {
                explain(&format!("the body has the field {name}, which is not on the route's list; with this setting it passes, unchecked"))
                    .setting("proxy", "extra_body_fields", Some(toml_list(name)))
            }
            (Refusal::FieldUnknown, _) => {
                explain("the body has a field that is not on the route's list, by a name that the journal does not repeat")
                    .setting("proxy", "extra_body_fields", None)
            }
            (Refusal::NotGranted, Rule::Capability(name)) => self.explain_capability(name),
            (Refusal::NotGranted, Rule::Tool("-")) => {
                explain("the body offers a model a tool without a name, and the run was granted some by name only; leave it out")
            }
            (Refusal::NotGranted, Rule::Tool(name)) => {
                explain(&format!("the body offers a model the tool {name}, and the run was granted others only"))
                    .setting(&self.agent_section(), "tools", Some(toml_list(name)))
            }
            (Refusal::NotGranted, _) => explain("the body asks for something that the run was not granted")
                .setting(&self.agent_section(), "capabilities", None),
            (Refusal::ModelNotGranted, Rule::Model(name)) => {
                explain(&format!("the run was not granted the model {name}")).setting(&self.agent_section(), "models", Some(toml_list(name)))
            }
            (Refusal::ModelNotGranted, _) => {
                explain("the run was not granted the model").setting(&self.agent_section(), "models", None)
            }
            _ => explain(&format!("the body is not one JSON object as the route takes it{in_field}; no setting changes that")),
        }
    }

    /// Explains a body that needs a capability.
    fn explain_capability(self, name: &str) -> Advice {
        let section = self.agent_section();
        let why =
            format!("the body asks for what needs the capability {name}, and the run was not granted it");
        let is = |capability: Capability| name == capability.name();
        let advice = match name {
            _ if is(Capability::StoredResponses) => explain(&format!(
                "{why}; no answer of a run is stored, so a client that names earlier ones has to set `store: false` (AI SDK: `providerOptions.openai.store = false`) or send the history instead of `previous_response_id` (OpenAI Agents SDK)"
            )),
            _ if is(Capability::WebSearch) || is(Capability::ServerTools) || is(Capability::Mcp) => explain(
                &format!("{why}; if the client only offers hosted tools, `ungranted_tools` leaves them out of its calls"),
            )
            .setting(&section, "ungranted_tools", Some("\"drop\"".to_owned())),
            _ => explain(&why),
        };
        advice.setting(&section, "capabilities", Some(toml_list(name)))
    }

    /// Explains a call that no run could be proved for.
    fn explain_identity(self, refusal: Refusal) -> Advice {
        let run = if self.record.identity == Identity::None { "RUN" } else { self.record.run_id.as_str() };
        let mint = format!("sluice token mint --run {run}");
        match refusal {
            Refusal::TokenMissing => explain("no run token came with the call").command(mint),
            Refusal::TokenMalformed => explain("the run token is malformed").command("sluice token inspect").command(mint),
            Refusal::TokenExpired => {
                explain("the run token has expired").command(mint).setting("proxy", "token_leeway", None)
            }
            Refusal::TokenInvalid => {
                explain("the run token is not signed with a secret that the proxy knows, or is another attempt's")
                    .command("sluice token inspect")
                    .command("sluice token reload")
                    .setting("proxy", "token_secrets_file", None)
            }
            Refusal::TokenRevoked => {
                explain("the run's tokens were revoked, which is for good: start another run")
            }
            Refusal::RunUnknown => {
                explain("the token is for a run that is not open on the shared listener").command("sluice usage")
            }
            Refusal::IdentityConflict => {
                explain("the call carries two conflicting identities; the client has to send one of them")
            }
            _ => explain("nothing that came with the call says whose it is: no token, no trace id and no slot of a live run")
                .command(mint)
                .setting("proxy", "listen_serves", None),
        }
    }

    /// Explains a refusal by a limit of the run or account.
    fn explain_limit(self, refusal: Refusal, rule: Rule<'_>) -> Advice {
        let run = self.record.run_id.as_str();
        let account = self.record.account.as_str();
        let (owner, selector, section, limit) = match rule {
            Rule::ToolLimit(limit) => return self.explain_tool_limit(limit),
            Rule::Run(limit) => (format!("run {run}"), format!("--run {run}"), self.agent_section(), limit),
            Rule::Account(limit) => {
                let section = format!("accounts.{}", toml_quote(account));
                (format!("account {account}"), format!("--account {}", shell(account)), section, limit)
            }
            _ => {
                return explain("a limit of the run or its account stood against the call")
                    .command(format!("sluice usage --run {run}"))
                    .command(format!("sluice usage --account {}", shell(account)));
            }
        };
        if refusal == Refusal::ModelUnpriced {
            let model = self.record.model_asked.as_ref().map_or("MODEL", |model| model.as_str());
            let prices = format!("prices.{}", toml_quote(model));
            return explain(&format!("{owner} has a limit of money, and the model {model} has no price"))
                .command(format!("sluice limit {selector} --none cost"))
                .setting(&prices, "input", None)
                .setting(&prices, "output", None);
        }
        let words = limit_in_words(limit);
        let reason = match refusal {
            Refusal::RateLimited => format!("{owner} calls faster than its limit of {words} allows"),
            Refusal::ConcurrencyLimited => format!("{owner} has as many calls in flight as its limit allows"),
            Refusal::QuotaReserved => {
                format!(
                    "the rest of {owner}'s limit of {words} is reserved for calls in flight: it may pass later"
                )
            }
            _ => format!("{owner} has used its limit of {words}, or has too little left for the call"),
        };
        let (option, value) = match limit {
            Limit::CostNanodollars => ("cost".to_owned(), "DOLLARS"),
            _ => (limit.words().replace(' ', "-"), "N"),
        };
        explain(&reason)
            .command(format!("sluice limit {selector} --{option} {value}"))
            .command(format!("sluice usage {selector}"))
            .setting(&section, limit.setting(), None)
    }

    /// Explains a refusal by an operator, by the end of the run, or by the proxy's own state.
    fn explain_stop(self, refusal: Refusal, rule: Rule<'_>) -> Advice {
        let account = self.record.account.as_str();
        match (refusal, rule) {
            (Refusal::RunDeadlineExceeded, _) => {
                explain(&format!("the time of run {} is up", self.record.run_id)).setting(&self.agent_section(), "run_timeout", None)
            }
            (Refusal::BalanceExhausted, _) => {
                explain(&format!("the balance of account {account} is below its floor; calls of free models pass"))
                    .command(format!("sluice billing balance --account {}", shell(account)))
                    .command(format!("sluice billing credit --account {} CREDITS", shell(account)))
                    .setting("billing", "floor", None)
            }
            (Refusal::Frozen, Rule::Other("all")) => {
                explain("an operator has stopped every call").command("sluice thaw --all")
            }
            (Refusal::Frozen, Rule::Other("account")) => explain(&format!("an operator has stopped calls of account {account}"))
                .command(format!("sluice thaw --account {}", shell(account))),
            (Refusal::Frozen, Rule::Other("model")) => {
                let model = self.record.model_asked.as_ref().map_or("MODEL", |model| model.as_str());
                explain(&format!("an operator has stopped calls for the model {model}"))
                    .command(format!("sluice thaw --model {}", shell(model)))
            }
            (Refusal::Frozen, _) => {
                explain("an operator has stopped calls of this account or model, or all").command("sluice freeze")
            }
            (Refusal::RunClosed, _) => {
                explain(&format!("run {} was closed before the call came; no setting opens it again", self.record.run_id))
            }
            (Refusal::Draining, _) => {
                explain("the proxy was going down: the call may be sent again when it is back").setting("proxy", "drain_timeout", None)
            }
            _ => explain("the journal could not take a record, and no call passes without one; the proxy's log says why")
                .command("sluice doctor")
                .setting("proxy", "state_dir", None),
        }
    }

    /// Explains a failure of the upstream.
    fn explain_upstream(self, refusal: Refusal) -> Advice {
        let status = self.record.status;
        match refusal {
            Refusal::UpstreamUnavailable => explain("the upstream could not be reached several times in a row, so the call was not tried")
                .command("sluice doctor")
                .setting("upstream", "base_url", None)
                .setting("upstream", "probe_path", None),
            Refusal::UpstreamUnreachable => explain("no connection to the upstream; nothing was sent")
                .command("sluice doctor")
                .setting("upstream", "base_url", None)
                .setting("upstream", "connect_timeout", None),
            Refusal::UpstreamReset => {
                explain("the upstream closed the connection before a byte of its answer; the client was told that it may send the call again")
                    .command("sluice doctor")
                    .setting("upstream", "pool_idle_timeout", None)
            }
            Refusal::UpstreamFailed => {
                explain("the upstream broke off in its answer, or its answer is not that of a model API; it has processed the call")
                    .command("sluice doctor")
            }
            Refusal::UpstreamTimeout => self.explain_timeout(),
            Refusal::UpstreamAuth => {
                let why = "it does not take the proxy's own key, the key may not use the model, or its money is used up";
                explain(&format!("the upstream answered {status}: {why}"))
                    .command("sluice doctor")
                    .command("sluice models")
                    .setting("upstream", "key_file", None)
            }
            Refusal::UpstreamRefused => {
                explain(&format!("the upstream answered {status} to the request; a gateway does not receive its text"))
            }
            Refusal::UpstreamBusy => {
                explain(&format!("the upstream answered {status}: it failed or is overloaded; the call may be sent again"))
                    .command("sluice doctor")
            }
            _ => explain("the conversation is longer than the model's context; the agent has to shorten it, or ask another model"),
        }
    }

    /// Explains a timeout of the upstream or the client.
    fn explain_timeout(self) -> Advice {
        let (what, section, key) = match self.record.timeout {
            Some(Timeout::Connect) => {
                ("the upstream did not take a connection", "upstream".to_owned(), "connect_timeout")
            }
            Some(Timeout::Tls) => (
                "the connection to the upstream was not secured",
                "upstream".to_owned(),
                "tls_handshake_timeout",
            ),
            Some(Timeout::Body) => ("the body did not come", self.agent_section(), "request_body_timeout"),
            Some(Timeout::FirstByte) | None => {
                ("the answer did not begin", self.agent_section(), "first_byte_timeout")
            }
            Some(Timeout::BetweenBytes) => {
                ("the answer stalled", self.agent_section(), "stream_idle_timeout")
            }
            Some(Timeout::Client) => {
                ("nothing of the answer was taken", self.agent_section(), "client_write_timeout")
            }
            Some(Timeout::Call) => ("the call was not complete", self.agent_section(), "call_timeout"),
        };
        explain(&format!("{what} in the time that there is for it")).setting(&section, key, None)
    }

    /// Returns the section of the run's agent.
    fn agent_section(self) -> String {
        format!("agents.{}", toml_quote(self.record.graph.as_str()))
    }
}

/// Returns advice with this reason, and no remedies yet.
fn explain(why: &str) -> Advice {
    Advice { why: why.to_owned(), commands: Vec::new(), settings: Vec::new() }
}

impl Advice {
    /// Returns this advice for a run that `[runs]` defines: its settings are in the run's own section, which has no
    /// limit of time and no host tools.
    #[must_use]
    pub fn for_configured_run(mut self, run_id: &RunId) -> Self {
        self.settings.retain(|setting| !["run_timeout", "host_tools"].contains(&setting.key));
        let of_agent = |setting: &&mut Setting| setting.section.starts_with("agents.");
        for setting in self.settings.iter_mut().filter(of_agent) {
            setting.section = format!("runs.{}", toml_quote(run_id.as_str()));
        }
        self
    }

    /// Adds that the body may have been refused for more: a record has the first reason.
    fn noting_other_reasons(mut self) -> Self {
        self.why += ". A record has the first reason; the client's error has all, and the proxy's log at level debug their rules";
        self
    }

    /// Adds a command.
    fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Adds a setting.
    fn setting(mut self, section: &str, key: &'static str, value: Option<String>) -> Self {
        self.settings.push(Setting { section: section.to_owned(), key, value });
        self
    }
}

const fn limit_in_words(limit: Limit) -> &'static str {
    match limit {
        Limit::CostNanodollars => "money",
        _ => limit.words(),
    }
}

/// Returns a TOML list with the new item `name` after the present ones.
fn toml_list(name: &str) -> String {
    format!("[…, {}]", toml_quote(name))
}

/// Returns a TOML key or text in quotation marks.
fn toml_quote(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the word for a shell, in quotation marks if it needs them.
pub fn shell(word: &str) -> String {
    let needs_no_quotes = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@-+=".contains(&byte);
    if word.bytes().all(needs_no_quotes) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
