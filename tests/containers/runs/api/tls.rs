//! Tests TLS of the HTTP API: off the loopback it is served in no other way, and a reload replaces the certificate.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt, time::Duration};

use harness::{
    Up, World, canary, eventually,
    server_identity::{ServerIdentity, TestCa},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

/// Runs of the account, which need a token.
const RUNS: &str = "/api/v1/runs";

/// World with TLS for its API on all addresses of this host.
struct Secured {
    world: World,
    up: Up,
    ca: TestCa,
    files: TempDir,
    address: SocketAddr,
}

impl Secured {
    async fn start() -> Self {
        let ca = TestCa::default();
        let files = tempfile::tempdir().unwrap();
        ca.issue().write(files.path());
        let settings = "origins = ['https://localhost:4180']";
        let mut world =
            World::with(&format!("[api]\nlisten = '0.0.0.0:0'\n{settings}\n{}", tls(&files))).await;
        assert!(world.stop_proxy().await);
        let sluice = world.sluice().env("SLUICE_LOG", "info").log_to(&world.path().join("up.log"));
        let up = Up::start(sluice).await;
        let url = up.said.lines().find_map(|line| line.strip_prefix("api       https://"));
        let address: SocketAddr = url.unwrap_or_else(|| panic!("{}", up.said)).parse().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
        Self { world, up, ca, files, address }
    }

    /// Returns the answer to a GET request over TLS, with these header lines.
    async fn get(&self, path: &str, headers: &str) -> String {
        let stream = self.ca.connect(self.address).await.unwrap();
        ask(stream, &format!("GET {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n")).await
    }

    async fn token(&self, arguments: &[&str]) -> String {
        let added = self.world.sluice().run(&[&["principals", "add"], arguments].concat()).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        canary::hand_out(added.stdout.trim());
        added.stdout.trim().to_owned()
    }

    fn reload(&self) {
        let pid = Pid::from_raw(self.up.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }

    /// Waits until the log of `sluice up` has `text`.
    async fn logged(&self, text: &str) {
        let log = || async { fs::read_to_string(self.world.path().join("up.log")).unwrap() };
        eventually(text, log, |log| log.contains(text)).await;
    }
}

fn tls(files: &TempDir) -> String {
    let dir = files.path().display();
    format!("tls_certificate = '{dir}/api.pem'\ntls_key = '{dir}/api.key'\n")
}

/// Sends `request` and returns the whole answer; as much as there is, if the connection breaks.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    let mut answer = Vec::new();
    if stream.write_all(request.as_bytes()).await.is_ok() {
        stream.read_to_end(&mut answer).await.ok();
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn off_the_loopback_the_api_has_tls() {
    let here = Secured::start().await;
    let token = here.token(&["app", "--account", "acct-7"]).await;
    let authorized = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
    let answer = here.get(RUNS, &authorized).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""runs":[]"#), "{answer}");
    let answer = here.get(RUNS, "host: localhost\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let plain = TcpStream::connect(here.address).await.unwrap();
    let answer = ask(plain, &format!("GET {RUNS} HTTP/1.1\r\n{authorized}\r\n")).await;
    assert!(!answer.contains("HTTP/1.1"), "without TLS: {answer}");
    assert!(TestCa::default().connect(here.address).await.is_err(), "a client that trusts another CA");
    for host in ["attacker.example", "127.0.0.1:4180", "localhost.attacker.example"] {
        let answer = here.get(RUNS, &authorized.replace("localhost", host)).await;
        assert!(answer.starts_with("HTTP/1.1 421 ") && answer.contains("wrong_host"), "{host}: {answer}");
    }
    here.up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_session_over_tls_is_secure() {
    let here = Secured::start().await;
    let token = here.token(&["app", "--account", "acct-7"]).await;
    let session = async |head: &str| {
        let stream = here.ca.connect(here.address).await.unwrap();
        let head =
            format!("{head}host: localhost\r\ncontent-length: 0\r\ncontent-type: application/json\r\n");
        ask(stream, &format!("{head}connection: close\r\n\r\n")).await
    };
    let post = "POST /api/v1/session HTTP/1.1\r\n";
    let answer = session(&format!("{post}authorization: Bearer {token}\r\n")).await;
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.starts_with("__Host-sluice_session="), "{cookie}");
    for flag in ["Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.split("; ").any(|part| part == flag), "{flag}: {cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let sign_out = "DELETE /api/v1/session HTTP/1.1\r\n";
    for (origin, status) in
        [("http://localhost:4180", 403), ("https://localhost", 403), ("https://localhost:4180", 204)]
    {
        let answer = session(&format!("{sign_out}cookie: {pair}\r\norigin: {origin}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{origin}: {answer}");
    }
    here.up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_reload_replaces_the_certificate() {
    const LIST: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let here = Secured::start().await;
    let mut open = here.ca.connect(here.address).await.unwrap();
    let next = TestCa::default();
    next.issue().write(here.files.path());
    here.reload();
    let is_replaced = || async { next.connect(here.address).await.is_ok() };
    eventually("the new certificate is served", is_replaced, |replaced| *replaced).await;
    assert!(here.ca.connect(here.address).await.is_err(), "the former one is not");
    open.write_all(LIST.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    open.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, *b"HTTP/1.1 200", "an open connection goes on");
    here.logged("API serves later connections with the certificate and key").await;

    // A broken pair is refused as a whole, and named.
    let dir = here.files.path();
    let ServerIdentity { certificate, .. } = next.issue();
    fs::write(dir.join("api.pem"), certificate).unwrap();
    here.reload();
    here.logged("cannot be used together").await;
    fs::write(dir.join("api.pem"), "none").unwrap();
    here.reload();
    here.logged("is not a certificate in PEM").await;
    let identity = next.issue();
    identity.write(dir);
    fs::set_permissions(dir.join("api.key"), fs::Permissions::from_mode(0o644)).unwrap();
    here.reload();
    here.logged("cannot read api.tls_key").await;
    let log = fs::read_to_string(here.world.path().join("up.log")).unwrap();
    assert!(log.contains("the API keeps its certificate"), "{log}");
    assert!(next.connect(here.address).await.is_ok(), "the former pair is served on");
    here.up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn an_unusable_certificate_fails_the_start() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let files = tempfile::tempdir().unwrap();
    let (identity, other) = (TestCa::default().issue(), TestCa::default().issue());
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}\n[api]\nlisten = '127.0.0.1:0'\n{}", tls(&files))).unwrap();
    for (certificate, key, mode, said) in [
        ("", &identity.key, 0o600, "api.tls_certificate"),
        (identity.certificate.as_str(), &other.key, 0o600, "cannot be used together"),
        (&identity.certificate, &String::new(), 0o600, "is not a private key in PEM"),
        (&identity.certificate, &identity.key, 0o604, "cannot read api.tls_key"),
    ] {
        fs::write(files.path().join("api.pem"), certificate).unwrap();
        fs::write(files.path().join("api.key"), key).unwrap();
        fs::set_permissions(files.path().join("api.key"), fs::Permissions::from_mode(mode)).unwrap();
        let refused = world.sluice().run(&["up"]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let checked = world.sluice().run(&["config", "check"]).await;
    assert!(checked.stderr.contains("api.tls_key: "), "the check finds the open key, too: {checked:?}");
    identity.write(files.path());
    assert_eq!(world.sluice().run(&["config", "check"]).await.code, Some(0), "control");
    let up = Up::start(world.sluice()).await;
    assert!(up.said.contains("api       https://127.0.0.1:"), "control: {}", up.said);
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_silent_handshake_is_cut() {
    let here = Secured::start().await;
    let began = Instant::now();
    let mut silent = Vec::new();
    // More than may be open: the oldest give way.
    for _ in 0..300 {
        silent.push(TcpStream::connect(here.address).await.unwrap());
    }
    let answer = timeout(Duration::from_secs(25), here.get("/healthz", "host: localhost\r\n")).await;
    assert!(answer.expect("it is answered").starts_with("HTTP/1.1 200 "));
    let cut = timeout(Duration::from_secs(25), ask(silent.pop().unwrap(), "")).await;
    assert_eq!(cut.expect("it is cut"), "");
    assert!(began.elapsed() > Duration::from_secs(4), "control: a slow handshake has its time");
    here.up.stop(Signal::TERM).await;
}
