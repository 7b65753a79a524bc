//! Tests TLS to the upstream: which servers it is spoken with, and that nothing is sent to any other.

use std::fs;

use bench::upstream::ScriptedUpstream;
use harness::{
    CANARY_KEY, World, eventually, pace,
    tls_terminator::{Certificate, TlsTerminator},
};
use http::Method;
use platform_core::{control::UpstreamHealth, record::Timeout};
use rustls::HandshakeKind;
use tokio::net::TcpListener;

/// File of a test's CA certificate.
struct CaFile(tempfile::NamedTempFile);

impl CaFile {
    fn with(text: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Self(file)
    }

    fn settings(&self, base_url: &str) -> String {
        format!(
            "base_url = '{base_url}'\nca_file = '{}'\ntls_handshake_timeout = '500ms'",
            self.0.path().display()
        )
    }
}

async fn reason(world: &World) -> String {
    let answer = world.control.send(Method::GET, "/v1/upstream", String::new()).await;
    match serde_json::from_slice(&answer.body).unwrap() {
        UpstreamHealth::Unreachable { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tls_calls_pass_and_sessions_resume() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let terminator = TlsTerminator::to(upstream.address(), Certificate::Good).await;
    let ca = CaFile::with(&terminator.ca);
    let settings = format!("{}\npool_idle_timeout = '20ms'", ca.settings(&terminator.base_url()));
    let world = World::reaching(upstream, &settings, "").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let (text, ended) = run.agent.stream("fake-words40").await.until_break().await;
    assert!(ended.is_ok() && text.contains("[DONE]"), "{text}");
    let seen = world.upstream.ledger().all();
    assert_eq!(seen[0].header("authorization"), [format!("Bearer {CANARY_KEY}")]);
    let resumed = || async {
        assert_eq!(run.agent.chat("fake").await.status, 200);
        pace(std::time::Duration::from_millis(30)).await;
        terminator.sessions()
    };
    eventually("a later session resumes the first", resumed, |all| all.contains(&HandshakeKind::Resumed))
        .await;
}

#[tokio::test]
async fn a_session_serves_one_call_after_the_other() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let terminator = TlsTerminator::to(upstream.address(), Certificate::Good).await;
    let ca = CaFile::with(&terminator.ca);
    let world = World::reaching(upstream, &ca.settings(&terminator.base_url()), "").await;
    let run = world.run("r1", "acct-1").await;
    for model in ["fake", "fake-words3", "fake-status400"] {
        run.agent.chat(model).await;
    }
    assert_eq!(terminator.sessions().len(), 1);
}

/// The reason is for operators only; agents do not see it.
#[tokio::test]
async fn an_impostor_of_the_upstream_gets_nothing() {
    for (certificate, words) in [
        (Certificate::Expired, "run out"),
        (Certificate::OtherName, "for another name"),
        (Certificate::OtherIssuer, "no trusted authority has signed its certificate"),
        (Certificate::SelfSigned, "no trusted authority has signed its certificate"),
    ] {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let terminator = TlsTerminator::to(upstream.address(), certificate).await;
        let ca = CaFile::with(&terminator.ca);
        let world = World::reaching(upstream, &ca.settings(&terminator.base_url()), "").await;
        let run = world.run("r1", "acct-1").await;
        let answer = run.agent.chat("fake").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (503, &"upstream_unreachable".into())
        );
        assert!(!answer.text().contains("certificate"), "no agent needs to know: {}", answer.text());
        assert!(world.upstream.ledger().all().is_empty(), "{certificate:?}");
        let told = reason(&world).await;
        assert!(told.contains(words), "{certificate:?}: {told}");
    }
}

#[tokio::test]
async fn only_the_cas_of_the_file_are_trusted() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let terminator = TlsTerminator::to(upstream.address(), Certificate::Good).await;
    let settings = format!("base_url = '{}'", terminator.base_url());
    let world = World::reaching(upstream, &settings, "").await;
    let told = reason(&world).await;
    assert!(told.contains("upstream.ca_file"), "the system does not know the CA: {told}");
}

#[tokio::test]
async fn a_port_without_tls_is_told_apart() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let base_url = format!("https://localhost:{}", upstream.address().port());
    let terminator = TlsTerminator::to(upstream.address(), Certificate::Good).await;
    let ca = CaFile::with(&terminator.ca);
    let world = World::reaching(upstream, &ca.settings(&base_url), "").await;
    let told = reason(&world).await;
    assert!(told.contains("does not speak TLS"), "{told}");
}

#[tokio::test]
async fn a_handshake_has_a_time_of_its_own() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = ScriptedUpstream::start().await.unwrap();
    let terminator = TlsTerminator::to(upstream.address(), Certificate::Good).await;
    let ca = CaFile::with(&terminator.ca);
    let base_url = format!("https://localhost:{}", silent.local_addr().unwrap().port());
    let world = World::reaching(upstream, &ca.settings(&base_url), "").await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.json()["error"]["code"], "upstream_unreachable");
    assert_eq!(world.records(1).await[0].record.timeout, Some(Timeout::Tls));
}

#[tokio::test]
async fn a_bad_ca_file_fails_the_start() {
    let world = World::start().await;
    let good = format!("base_url = '{}'", world.upstream.base_url());
    for (text, complaint) in [
        ("", "has no certificate"),
        ("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n", "cannot read upstream.ca_file"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "that cannot be used"),
    ] {
        let ca = CaFile::with(text);
        let settings = ca.settings("https://localhost");
        world.reconfigure(&good, &settings);
        let told = world.proxy_fails_to_start().await;
        world.reconfigure(&settings, &good);
        assert!(told.contains(complaint), "{text:?}: {told}");
    }
}
