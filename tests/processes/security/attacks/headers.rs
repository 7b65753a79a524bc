//! Attacks in request headers. Some could change how a call is attributed, routed or processed. Others could make an
//! intermediary drop or change Sluicegate's own headers.

use bench::upstream::Entry;
use harness::{CANARY_KEY, OriginalProxy, World, grant};

use super::{
    Control::{self, Direct, Nginx, Repaired},
    MARK, status, told, with_lines,
};
use crate::security::attribution::OURS;

type Row = (&'static [u8], Control);

/// Lines that must not arrive: the call passes without them.
const DROPPED: &[Row] = &[
    // Names of our headers, in lines that could instruct a proxy on the way to drop or to misread those headers.
    (b"connection: authorization, x-litellm-end-user-id, victim", Direct),
    (b"Connection: x-litellm-spend-logs-metadata\r\nconnection: victim", Direct),
    (b"connection: close, x-litellm-customer-id\r\nx-litellm-customer-id: victim", Nginx),
    (b"connection: te, victim\r\nte: trailers, victim", Direct),
    (b"proxy-connection: victim", Nginx),
    (b"keep-alive: timeout=9, victim", Direct),
    (b"connection: upgrade\r\nupgrade: victim", Direct),
    (b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: victim", Nginx),
    (b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: victim", Nginx),
    (b"te: victim", Direct),
    (b"trailer: authorization, x-litellm-end-user-id, victim", Nginx),
    (b"proxy-authorization: Bearer victim", Nginx),
    (b"proxy-authenticate: victim", Nginx),
    (b"expect: victim", Direct),
    (b"host: victim", Nginx),
    (b"x_litellm_end_user_id: victim", Direct),
    (b"x_litellm-customer_id: victim", Direct),
    (b"x-litellm-end-user-id:victim", Direct),
    (b"X-LiteLLM-Customer-Id:\tvictim\t", Nginx),
    (b"x-litellm-customer-id:   victim   ", Nginx),
    (b"x-litellm-customer-id: \xff\xfevictim", Nginx),
    (b"x-litellm-customer-id: acct-1\xc2\xa0victim", Nginx),
    (b"x-litellm-customer-id: acct-1, victim", Nginx),
    (b"x-litellm-customer-id: acct-1\r\nx-litellm-customer-id: victim", Nginx),
    (b"x-litellm-customer-id:\r\nX-LITELLM-CUSTOMER-ID: victim", Nginx),
    (b"x-litellm-customer-id: %0d%0ax-litellm-end-user-id: victim", Nginx),
    // Another method, path or address than the request line says.
    (b"x-http-method-override: victim", Nginx),
    (b"x-http-method: victim", Nginx),
    (b"x-method-override: victim", Nginx),
    (b"x-original-url: /key/generate?victim", Nginx),
    (b"x-rewrite-url: /key/generate?victim", Nginx),
    (b"x-original-method: victim", Nginx),
    (b"x-forwarded-for: 127.0.0.1, victim", Nginx),
    (b"x-forwarded-host: victim", Nginx),
    (b"x-forwarded-proto: victim", Nginx),
    (b"x-forwarded-prefix: /victim", Nginx),
    (b"x-forwarded-user: victim", Nginx),
    (b"x-forwarded-email: victim", Nginx),
    (b"x-real-ip: victim", Nginx),
    (b"forwarded: for=victim", Nginx),
    (b"via: 1.1 victim", Nginx),
    (b"origin: https://victim", Nginx),
    (b"referer: https://victim", Nginx),
    // Orders to LiteLLM, known and to come.
    (b"x-litellm-tags: victim", Nginx),
    (b"x-litellm-timeout: 1\r\nx-litellm-stream-timeout: victim", Nginx),
    (b"x-litellm-num-retries: victim", Nginx),
    (b"x-litellm-enable-message-redaction: victim", Nginx),
    (b"litellm-enable-message-redaction: victim", Nginx),
    (b"litellm-disable-message-redaction: victim", Nginx),
    (b"x-litellm-disable-callbacks: victim", Nginx),
    (b"x-litellm-trace-id: victim", Nginx),
    (b"x-litellm-agent-id: victim", Nginx),
    (b"litellm-changed-by: victim", Nginx),
    (b"x-litellm-mcp-servers: victim", Nginx),
    (b"x-mcp-servers: victim", Nginx),
    (b"x-mcp-auth: Bearer victim", Nginx),
    (b"x-mcp-access-groups: victim", Nginx),
    (b"x-litellm-whatever-comes-next: victim", Nginx),
    (b"x-pass-authorization: Bearer victim", Nginx),
    (b"langfuse-trace-id: victim", Nginx),
    (b"langfuse_trace_user_id: victim", Direct),
    (b"helicone-user-id: victim", Nginx),
    // Keys and accounts of providers.
    (b"openai-organization: victim", Nginx),
    (b"openai-project: victim", Nginx),
    (b"x-goog-api-key: victim", Nginx),
    (b"x-amz-security-token: victim", Nginx),
    (b"ocp-apim-subscription-key: victim", Nginx),
    (b"anthropic-dangerous-direct-browser-access: victim", Nginx),
    (b"anthropic-organization-id: victim", Nginx),
    (b"idempotency-key: victim", Nginx),
    (b"x-request-id: victim", Nginx),
    (b"cookie: token=victim\r\ncookie2: victim", Nginx),
    // Headers that carry a trace and its baggage.
    (b"tracestate: victim=1", Nginx),
    (b"baggage: user=victim", Nginx),
    (b"b3: victim", Nginx),
    // Another answer than the whole one, plain.
    (b"range: bytes=0-1, victim", Nginx),
    (b"if-range: victim", Nginx),
    (b"if-none-match: \"victim\"", Nginx),
    (b"if-match: \"victim\"", Nginx),
    (b"accept-encoding: gzip, victim", Nginx),
    (b"content-language: victim", Nginx),
    (b"cache-control: no-store, victim", Nginx),
    (b"x-stainless: victim", Nginx),
    (b"xx-stainless-lang: victim", Nginx),
    (b"x_stainless_lang: victim", Direct),
];

/// Lines that no two readers need agree on: the call is refused, and the same without them passes.
const REFUSED: &[Row] = &[
    (b" x-litellm-end-user-id: victim", Repaired),
    (b"x-litellm-end-user-id : victim", Repaired),
    (b"x-litellm-end-user-id\t: victim", Repaired),
    (b"x-litellm-end-user-id", Repaired),
    (b": victim", Repaired),
    (b"x-litellm end-user-id: victim", Repaired),
    (b"x-litellm-end-user-id\0: victim", Repaired),
    (b"x-litellm-end-user-id: a\0victim", Repaired),
    (b"x-litellm-end-user-id: a\rauthorization: victim", Repaired),
    (b"accept: a\r\n victim: b", Repaired),
    (b"accept: a\r\n\tvictim: b", Repaired),
    (b"x-litellm-end\xc3\xbcser-id: victim", Repaired),
    (b"(x-litellm-end-user-id): victim", Repaired),
    (b"host: a\r\nhost: victim", Repaired),
    (b"transfer-encoding: victim", Repaired),
    (b"content-encoding: victim", Repaired),
    (b"content-encoding: identity, victim", Repaired),
];

/// Lines of which one arrives, as it came: they begin as SDKs' own do, and may hold what they like.
const ALLOWED: &[(&[u8], &str, &str)] = &[
    (b"x-stainless-a: %0d%0aauthorization: victim", "x-stainless-a", "%0d%0aauthorization: victim"),
    (b"x-stainless-a: a\r\nx-stainless-a: victim", "x-stainless-a", "victim"),
    (b"x-stainless-authorization: victim", "x-stainless-authorization", "victim"),
    (b"x-stainless-\"}: victim", "", ""),
    (b"user-agent: victim\r\nuser-agent: other", "user-agent", "victim"),
    (b"accept: victim\r\naccept: other", "accept", "victim"),
    (b"anthropic-beta: victim\r\nanthropic-beta: other", "anthropic-beta", "victim"),
];

/// Returns lines that are too long or too many for a table.
fn crowds() -> Vec<(&'static str, Vec<u8>, u16, Control)> {
    let many = |name: &str, count: usize| -> Vec<u8> {
        (0..count).flat_map(|at| format!("{name}{at}: victim\r\n").into_bytes()).collect()
    };
    let trimmed = |mut lines: Vec<u8>| {
        lines.truncate(lines.len() - 2);
        lines
    };
    let long = |name: &str, length: usize| format!("{name}: {MARK}{}", "a".repeat(length)).into_bytes();
    vec![
        ("a long value", long("x-litellm-tags", 7 << 10), 200, Nginx),
        ("a longer value", long("x-litellm-tags", 60 << 10), 200, Direct),
        ("too long a value", long("x-litellm-tags", 65 << 10), 431, Direct),
        ("too long a value of a header that passes", long("x-stainless-a", 65 << 10), 431, Direct),
        ("a name that is too long", long(&"x".repeat(70 << 10), 1), 431, Repaired),
        ("many", trimmed(many("x-litellm-a", 80)), 200, Nginx),
        ("too many", trimmed(many("x-stainless-a", 200)), 431, Repaired),
    ]
}

/// Returns the number of rows.
pub(super) fn count() -> usize {
    DROPPED.len() + REFUSED.len() + ALLOWED.len() + crowds().len()
}

pub(super) fn assert_only_ours(seen: &Entry, besides: &str, row: &str) {
    let mut names: Vec<_> =
        seen.headers.iter().map(|(name, _)| name.as_str()).filter(|name| *name != besides).collect();
    names.sort_unstable();
    assert_eq!(names, OURS, "{row}");
    let ours = [
        ("authorization", format!("Bearer {CANARY_KEY}")),
        ("x-litellm-end-user-id", "acct-1".to_owned()),
        ("x-litellm-customer-id", "acct-1".to_owned()),
        ("accept-encoding", "identity".to_owned()),
    ];
    for (name, value) in ours {
        assert_eq!(seen.header(name), [value], "{row}: {name}");
    }
    for (name, value) in seen.headers.iter().filter(|(name, _)| name != besides) {
        assert!(!value.contains(MARK), "{row}: {name}: {value}");
    }
}

/// World in which the rows are tried, and the peers at which their controls are tried.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) run: harness::Run,
    nginx: OriginalProxy,
    direct: harness::Agent,
}

impl Stage {
    pub(super) async fn set() -> Self {
        let world = World::start().await;
        let run = world.run("r1", "acct-1").await;
        let nginx = OriginalProxy::start(world.upstream.address(), &grant("r1", "acct-1"), CANARY_KEY).await;
        let direct = harness::Agent::over_tcp(world.upstream.address());
        Self { world, run, nginx, direct }
    }

    /// Sends the attack; returns its answer, and what arrived of it.
    pub(super) async fn tried(&self, lines: &[u8]) -> (u16, Option<Entry>) {
        self.world.upstream.ledger().clear();
        let answer = told(&self.run.agent, &with_lines(lines)).await;
        (status(&answer), self.world.upstream.ledger().last())
    }

    /// Asserts by the control that the attack is one.
    async fn assert_real(&self, row: &str, lines: &[u8], control: Control) {
        let (agent, lines) = match control {
            Nginx => (&self.nginx.agent, lines),
            Direct => (&self.direct, lines),
            Repaired => (&self.run.agent, &b"x-a: b"[..]),
        };
        self.world.upstream.ledger().clear();
        let answer = told(agent, &with_lines(lines)).await;
        let Some(seen) = self.world.upstream.ledger().last() else {
            panic!("{row}: the control did not arrive: {answer}");
        };
        let has_arrived =
            seen.headers.iter().any(|(name, value)| name.contains(MARK) || value.contains(MARK));
        assert_eq!(has_arrived, control != Repaired, "{row}: {control:?}: {answer} {:?}", seen.headers);
    }
}

#[tokio::test]
async fn a_line_that_is_not_ours_arrives_in_no_shape() {
    let stage = Stage::set().await;
    for (lines, control) in DROPPED {
        let row = String::from_utf8_lossy(lines);
        let (status, seen) = stage.tried(lines).await;
        assert_eq!(status, 200, "{row}");
        assert_only_ours(&seen.unwrap(), "", &row);
        stage.assert_real(&row, lines, *control).await;
    }
}

#[tokio::test]
async fn an_ambiguous_header_line_is_refused() {
    let stage = Stage::set().await;
    for (lines, control) in REFUSED {
        let row = String::from_utf8_lossy(lines);
        let (status, seen) = stage.tried(lines).await;
        assert!((400..500).contains(&status) && seen.is_none(), "{row}: {status} {seen:?}");
        stage.assert_real(&row, lines, *control).await;
    }
}

#[tokio::test]
async fn an_allowed_header_brings_nothing_along() {
    let stage = Stage::set().await;
    for (lines, name, value) in ALLOWED {
        let row = String::from_utf8_lossy(lines);
        let (status, seen) = stage.tried(lines).await;
        if name.is_empty() {
            assert!(status == 400 && seen.is_none(), "{row}: {status} {seen:?}");
            continue;
        }
        let seen = seen.unwrap();
        assert_eq!((status, seen.header(name)), (200, vec![*value]), "{row}");
        assert_only_ours(&seen, name, &row);
    }
}

#[tokio::test]
async fn a_crowd_of_lines_is_dropped_or_refused_whole() {
    let stage = Stage::set().await;
    for (row, lines, expected, control) in crowds() {
        let (status, seen) = stage.tried(&lines).await;
        assert_eq!((status, seen.is_some()), (expected, expected == 200), "{row}");
        if let Some(seen) = seen {
            assert_only_ours(&seen, "", row);
        }
        stage.assert_real(row, &lines, control).await;
    }
}
