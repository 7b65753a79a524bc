//! The benchmark itself: every peer does the work it is measured for, and a run leaves what it promises.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{path::PathBuf, time::Duration};

use bench::{
    load::Connection,
    measure::machine::Machine,
    peer::{self, Peer},
    report::Record,
    request,
    session::Plan,
    upstream::{Entry, ScriptedUpstream},
    workload::{self, Generator},
};

/// A directory of a test's own. Short, because a unix socket's path may have 107 bytes.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sbt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn named(name: &str) -> Peer {
    peer::ALL.into_iter().find(|peer| peer.name == name).unwrap()
}

#[tokio::test]
async fn every_peer_bears_every_load_and_is_recorded() {
    let kinds = ["small-1", "runs-32x8", "rate-2000", "big-stream", "paced-10", "socat-8", "in-flight-64"];
    let plan = Plan {
        peers: peer::ALL.to_vec(),
        workloads: workload::ALL.into_iter().filter(|workload| kinds.contains(&workload.name)).collect(),
        rounds: 1,
        span: Duration::from_millis(60),
        generator: Generator::Sleeps,
        before: PathBuf::new(),
    };
    let place = Place::new("run");
    let (peers, kept) = (place.0.join("peers"), place.0.join("kept"));
    let samples = plan.run(&peers, |_| {}).await.unwrap();
    let record = Record::of(Machine::here(), &plan, samples);
    assert_eq!(record.rows.len(), peer::ALL.len() * kinds.len());
    for row in &record.rows {
        let who = format!("{} under {}", row.peer, row.workload);
        let hop = row.peer != "direct";
        assert!(row.rps > 0.0 && row.p50_us > 0.0 && row.p99_us >= row.p50_us, "{who}: {row:?}");
        assert_eq!(row.cpu_us_per_request > 0.0, hop, "{who}");
        assert_eq!(row.idle_mib > 0.0 && row.peak_mib > 0.0, hop, "{who}");
        assert_eq!(row.event_delay_us.is_some(), ["big-stream", "paced-10"].contains(&row.workload), "{who}");
    }
    record.write(&kept, &peers).unwrap();
    for (file, content) in [
        ("summary.json", "\"cpu_us_per_request\""),
        ("raw.json", "\"latency_ns\""),
        ("machine.json", "HAProxy version"),
        ("tables.md", "does not do"),
        ("plot.svg", "sluicegate"),
        ("configs/nginx-lua.conf", "crypto.HMAC_Update"),
    ] {
        let text = std::fs::read_to_string(kept.join(file)).unwrap();
        assert!(text.contains(content), "{file}: {text}");
    }
    let png = std::fs::read(kept.join("plot.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 5000, "{} bytes", png.len());
}

/// A peer takes part in these as far as it has the feature that they need.
#[tokio::test]
async fn threads_tls_and_idle_connections_are_borne() {
    let kinds = ["agent-32", "tls-32", "spin-32", "threads-1", "threads-2"];
    let plan = Plan {
        peers: peer::ALL.to_vec(),
        workloads: workload::all(2).into_iter().filter(|workload| kinds.contains(&workload.name)).collect(),
        rounds: 1,
        span: Duration::from_millis(60),
        generator: Generator::Sleeps,
        before: PathBuf::new(),
    };
    let place = Place::new("env");
    let samples = plan.run(&place.0, |_| {}).await.unwrap();
    let peers = |workload: &str| samples.iter().filter(|samples| samples.workload.name == workload).count();
    assert_eq!(kinds.map(peers), [12, 9, 12, 10, 10]);
    for samples in &samples {
        let who = format!("{} under {}", samples.peer.name, samples.workload.name);
        assert!(samples.rounds.iter().all(|sample| sample.round.requests > 0), "{who}");
    }
}

/// The floor writes neither: a direct connection, and hops that parse nothing.
#[tokio::test]
async fn every_proxy_writes_credential_and_identity() {
    let place = Place::new("same");
    for peer in peer::ALL {
        let is_floor = ["direct", "relay", "skeleton"].contains(&peer.name);
        let expected = if is_floor { "Bearer sandbox" } else { "Bearer sk-bench" };
        let seen = seen_behind(&peer, &place).await;
        assert_eq!(seen.header("authorization"), [expected], "{}", peer.name);
        assert_eq!(seen.header("x-litellm-end-user-id").len(), usize::from(!is_floor), "{}", peer.name);
    }
}

/// Peers that are measured only when they are named do the same work. Those that are missing name their installer.
#[tokio::test]
async fn peers_on_request_work_or_name_their_install() {
    let place = Place::new("asked");
    let reference = seen_behind(&named("nginx-tuned"), &place).await;
    for peer in peer::ON_REQUEST {
        if !peer.is_installed() {
            let error = peer.start(&place.0, &ScriptedUpstream::start().await.unwrap().address().into());
            let error = error.unwrap_err().to_string();
            assert!(error.contains("is not installed: run `make bench-peers`"), "{error}");
            continue;
        }
        let seen = seen_behind(&peer, &place).await;
        // Sluicegate limits the output.
        assert!(seen.body == reference.body || peer.control.is_some(), "{}: {:?}", peer.name, seen.body);
        for header in ["authorization", "x-litellm-end-user-id", "content-type"] {
            assert_eq!(seen.header(header), reference.header(header), "{}: {header}", peer.name);
        }
        assert_eq!(seen.header("x-litellm-spend-logs-metadata").len(), 1, "{}", peer.name);
    }
}

/// Returns what the upstream saw of a request through `peer`.
async fn seen_behind(peer: &Peer, place: &Place) -> Entry {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let running = peer.start(&place.0, &upstream.address().into()).unwrap();
    let mut connection = Connection::open(&running.target).await.unwrap();
    connection.exchange(&request::chat("fake", 1024)).await.unwrap();
    upstream.ledger().last().unwrap()
}

/// Sluicegate opens no run again that it has closed: a round that starts it anew must not find the last round's state.
#[tokio::test]
async fn fresh_peers_find_nothing_of_earlier_ones() {
    let place = Place::new("fresh");
    let upstream = ScriptedUpstream::start().await.unwrap();
    let start = || named("relay").start(&place.0, &upstream.address().into()).unwrap();
    let left = {
        let earlier = start();
        let left = [earlier.site.dir.join("left"), earlier.site.run.join("left")];
        for file in &left {
            std::fs::write(file, "state").unwrap();
        }
        left
    };
    let _later = start();
    assert!(left.iter().all(|file| !file.exists()), "{left:?}");
}

#[tokio::test]
async fn peers_that_check_tokens_refuse_a_forged_one() {
    let place = Place::new("forged");
    for name in ["nginx-lua", "haproxy-token", "sluicegate-token"] {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let running = named(name).start(&place.0, &upstream.address().into()).unwrap();
        let request = String::from_utf8(request::chat("fake", 1024).to_vec()).unwrap();
        let forged = request.replace("bench|0|9999999999", "other|0|9999999999");
        assert_ne!(request, forged);
        let mut connection = Connection::open(&running.target).await.unwrap();
        let refused = connection.exchange(forged.as_bytes()).await.unwrap_err();
        assert!(refused.to_string().contains("401"), "{name}: {refused}");
        assert!(upstream.ledger().is_empty());
        let mut connection = Connection::open(&running.target).await.unwrap();
        connection.exchange(request.as_bytes()).await.unwrap();
    }
}
