//! world sets up a store with runs, a gateway on its socket, and a client.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use axum::body::{Body, Bytes};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use platform_core::{
    connection::{ConnectionKind, ConnectionProvider, ConnectionScope},
    control::Usage,
    grant::Correlation,
    host_tools::{EXEC_PATH, header},
    id::{AccountId, AgentId, InstallationId, RunId, ToolName},
    limit::Millis,
    priority::Priority,
    secret::Secret,
};
use platform_runtime::{
    config::Sources,
    poll::poll_until,
    settings::{GitHub, ServiceUrl, Settings},
    task,
};
use runner_connections::{ConnectionBroker, SealingKeys, WantedConnection};
use runner_github::CredentialSource;
use runner_model::lifecycle::{Completion, Transition};
use runner_repos::Refresher;
use runner_store::{
    Address, AtSamePlace, Claimant, ConnectionPlace, Created, FencingToken, HostId, HostIdentity, NewRun,
    Store, StoredToolCall, Worker,
};
use runner_tools::{GatewayParts, ToolGateway};
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use tempfile::TempDir;
use tokio::{net::UnixStream, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::double::GitHubDouble;

/// Longest wait for a condition.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Token that the GitHub of a test accepts.
pub(crate) const TOKEN: &str = "ghp-canary-7f3a";

/// A store, and a gateway that serves its tools.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) github: GitHubDouble,
    pub(crate) parts: GatewayParts,
    stop: CancellationToken,
    dir: TempDir,
}

/// Call, as the data plane passes it on.
#[derive(Debug, Clone)]
pub(crate) struct RawCall {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// Answer to a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn outcome(&self) -> &str {
        self.headers.get(header::OUTCOME).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the connection with the credential that was used; empty if none was.
    pub(crate) fn connection(&self) -> &str {
        self.headers.get(header::CONNECTION).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

impl RawCall {
    /// Returns an ordinary call of `tool` by run `r1`.
    pub(crate) fn exec(tool: &str, id: &str, args: &Value) -> Self {
        let body = json!({ "runId": "r1", "callId": id, "tool": tool, "args": args });
        Self::of(EXEC_PATH, tool, body.to_string().into_bytes())
    }

    pub(crate) fn of(path: &'static str, tool: &str, body: Vec<u8>) -> Self {
        let call = format!("dp-{:08x}", platform_runtime::random::bits() & 0xffff_ffff);
        let headers = vec![
            (header::PROTOCOL, "1".to_owned()),
            (header::RUN, "r1".to_owned()),
            (header::ATTEMPT, "0".to_owned()),
            (header::ACCOUNT, "acct-1".to_owned()),
            (header::CALL, call),
            (header::GRANTED, format!("{tool},core__get_current_time")),
            (header::TOOL, tool.to_owned()),
        ];
        Self { method: Method::POST, path, headers, body }
    }

    /// Returns the call with another value of a header; without the header if the value is empty.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(there, _)| *there != name);
        if !value.is_empty() {
            self.headers.push((name, value.to_owned()));
        }
        self
    }
}

pub(crate) fn id(run: &str) -> RunId {
    RunId::parse(run).unwrap()
}

pub(crate) fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with_config("").await
    }

    /// Starts a gateway with `config` in its configuration, besides its socket.
    pub(crate) async fn with_config(config: &str) -> Self {
        let world = Self::unserved(config).await;
        world.serve();
        world.reachable().await;
        world
    }

    /// Sets up all but the gateway.
    pub(crate) async fn unserved(config: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("sluice-tools-").tempdir_in("/tmp").unwrap();
        let github = GitHubDouble::start(TOKEN).await;
        let keys = dir.path().join("keys");
        fs::write(&keys, SealingKeys::generate().expose()).unwrap();
        fs::set_permissions(&keys, Permissions::from_mode(0o600)).unwrap();
        let text = format!(
            "[proxy]\nrun_dir = '{0}/run'\n[sandbox]\nstate_dir = '{0}/state'\n\
             [connections]\nkey_file = '{0}/keys'\n{config}",
            dir.path().display()
        );
        let sources = Sources { file: Some(("s.toml".into(), text)), ..Sources::default() };
        let settings = Arc::new(Settings::read(&sources).unwrap());
        let address = |text: &str| ServiceUrl::parse(text).unwrap();
        let url = &github.url;
        let at =
            GitHub { url: address(url), api_url: address(&format!("{url}/api/v3")), ..GitHub::default() };
        let token = Arc::new(Secret::new(TOKEN.to_owned()));
        let credentials = CredentialSource::open(&at, Some(token)).unwrap();

        let store = open(&format!("sqlite://{}/private/sluice.db", dir.path().display())).await;
        let settings = Arc::new(Settings { github: at, ..Settings::clone(&settings) });
        let connections = ConnectionBroker::of(&settings, store.clone(), Arc::default());
        let github_source = Some(Arc::new(credentials));
        let parts =
            GatewayParts { settings, github: github_source, connections, refresher: Refresher::default() };
        let world = Self { store, github, parts, stop: CancellationToken::new(), dir };
        world.run("r1", "acct-1").await;
        world
    }

    /// Gives an account a token at a provider.
    pub(crate) async fn connect(&self, account: &str, provider: &str, token: &str) {
        let place = ConnectionPlace {
            account: AccountId::parse(account).unwrap(),
            provider: ConnectionProvider::parse(provider).unwrap(),
            scope: ConnectionScope::everything(),
        };
        let secret = Secret::new(token.to_owned());
        let wanted = WantedConnection { place, kind: ConnectionKind::Token, secret, expires: None };
        self.parts.connections.add(wanted, AtSamePlace::Keep).await.unwrap();
    }

    pub(crate) fn gateway(&self) -> ToolGateway {
        ToolGateway::new(self.store.clone(), self.parts.clone())
    }

    pub(crate) fn serve(&self) {
        drop(task::spawn("gateway", self.gateway().serve(self.stop.clone())));
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.parts.settings.tool_socket()
    }

    pub(crate) fn store_url(&self) -> String {
        format!("sqlite://{}/private/sluice.db", self.dir.path().display())
    }

    /// Changes the store behind its back.
    pub(crate) async fn sql(&self, statement: &str) {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.store_url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub(crate) async fn reachable(&self) {
        eventually("the socket is served", async || UnixStream::connect(self.socket()).await.ok()).await;
    }

    /// Stores a run that is running, with a repository at the double.
    pub(crate) async fn run(&self, run: &str, account: &str) -> FencingToken {
        let repo = json!({ "url": format!("{}/octo/hello", self.github.url), "base": "main", "branch": "sandbox/x" });
        self.ordered(run, account, &json!({ "repo": repo })).await
    }

    pub(crate) async fn ordered(&self, run: &str, account: &str, wanted: &Value) -> FencingToken {
        let new = NewRun {
            run_id: id(run),
            account: AccountId::parse(account).unwrap(),
            agent: AgentId::parse("sandbox:agent").unwrap(),
            correlation: Correlation::default(),
            priority: Priority::default(),
            session: None,
            turn: None,
            model: None,
            question: None,
            wanted: wanted.to_string(),
        };
        let claimant = Worker::this_process();
        let created =
            self.store.create(&new, Claimant::Worker(&claimant, Millis::seconds(600))).await.unwrap();
        let Created::New(created) = created else { panic!("{created:?}") };
        let token = created.fencing_token();
        for transition in [Transition::Prepare, Transition::Start, Transition::Run] {
            self.store.step(&token, &transition.into()).await.unwrap();
        }
        token
    }

    /// Ends a run.
    pub(crate) async fn end(&self, token: &FencingToken) {
        let completion = Completion { exit_code: Some(0), oom_seen: Some(false), answer: Ok(String::new()) };
        for transition in [Transition::Settle(completion), Transition::Finish(Some(Usage::default()))] {
            self.store.step(token, &transition.into()).await.unwrap();
        }
    }

    /// Returns the call with an id, once it is stored and has ended.
    pub(crate) async fn ended_call(&self, call: &str) -> StoredToolCall {
        eventually("the call has ended", async || {
            let calls = self.store.tool_calls(&id("r1")).await.unwrap();
            calls.into_iter().find(|stored| stored.id == call && stored.ended.is_some())
        })
        .await
    }

    pub(crate) async fn send(&self, call: RawCall) -> Answer {
        send(&self.socket(), call).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) async fn open(url: &str) -> Store {
    let address = Address::parse(url, None).unwrap();
    let store = Store::open(&address, InstallationId::parse("here").unwrap()).await.unwrap();
    store.serving(HostIdentity { id: HostId::from_random(1), name: "host".to_owned() }).await.unwrap()
}

/// Sends a call to a socket.
pub(crate) async fn send(socket: &std::path::Path, call: RawCall) -> Answer {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    drop(task::spawn("client", connection));
    let mut request = Request::builder().method(call.method).uri(call.path).header("host", "tools");
    for (name, value) in &call.headers {
        request = request.header(*name, value);
    }
    let response = sender.send_request(request.body(Body::from(call.body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    #[expect(clippy::disallowed_methods, reason = "it is our own answer")]
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(!text.contains(TOKEN), "the credential is shown: {text}");
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// Polls until `poll` returns a value.
pub(crate) async fn eventually<T>(what: &str, poll: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + EVENTUALLY_TIMEOUT;
    let value = poll_until(deadline, POLL_INTERVAL, async || poll().await).await;
    value.unwrap_or_else(|| panic!("{what}: not within {EVENTUALLY_TIMEOUT:?}"))
}

/// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
pub(crate) fn raw_nest(layers: usize) -> String {
    let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
    (0..layers).fold("1".to_owned(), |inner, _| {
        format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
    })
}
