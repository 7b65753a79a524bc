//! metrics queries a real Prometheus: the account is forced, whatever an agent writes.

use serde_json::{Value, json};

use crate::world::{Answer, RawCall, World};

const QUERY: &str = "core__metrics_query";

async fn query(world: &World, args: &Value) -> Answer {
    let id = format!("c{:08x}", platform_runtime::random::bits() & 0xffff_ffff);
    world.send(RawCall::exec(QUERY, &id, args)).await
}

#[tokio::test]
async fn metrics_that_are_away_are_a_failure() {
    let world = World::with_config(
        "[tools.metrics]\nurl = 'http://127.0.0.1:9'\n[tools.metrics.templates.any]\nquery = 'sum(up{$account})'\n",
    )
    .await;
    let answer = query(&world, &json!({ "query": "any" })).await;
    assert_eq!((answer.code(), answer.outcome()), ("tool_failed", "failed"), "{answer:?}");
}

/// Tests with a real Prometheus.
mod prometheus {
    use std::{
        fs,
        net::TcpListener,
        process::{Child, Command, Stdio},
    };

    use serde_json::json;
    use tempfile::TempDir;
    use tokio::net::TcpStream;

    use super::{QUERY, query};
    use crate::world::{RawCall, World, eventually};

    /// Time of all samples.
    const AT: u64 = 1_700_000_000;

    /// Prometheus with samples of two accounts, which is killed on drop.
    struct Prometheus {
        port: u16,
        child: Child,
        _dir: TempDir,
    }

    impl Drop for Prometheus {
        fn drop(&mut self) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }

    impl Prometheus {
        async fn start() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let samples = format!(
                "# TYPE calls counter\ncalls_total{{account=\"acct-1\",model=\"m\"}} 11 {AT}\ncalls_total{{account=\"acct-2\",model=\"m\"}} 22 {AT}\n# EOF\n"
            );
            let at = |name: &str| dir.path().join(name);
            fs::write(at("samples"), samples).unwrap();
            fs::write(at("prometheus.yml"), "global: {}\n").unwrap();
            let mut fill = Command::new("promtool");
            fill.args(["tsdb", "create-blocks-from", "openmetrics"]).args([at("samples"), at("data")]);
            let filled = fill.output().expect("promtool is installed");
            assert!(filled.status.success(), "{filled:?}");
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = Command::new("prometheus")
                .arg(format!("--config.file={}", at("prometheus.yml").display()))
                .arg(format!("--storage.tsdb.path={}", at("data").display()))
                .arg("--storage.tsdb.retention.time=100y")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("prometheus is installed");
            let prometheus = Self { port, child, _dir: dir };
            eventually("prometheus is ready", async || TcpStream::connect(("127.0.0.1", port)).await.ok())
                .await;
            prometheus
        }

        async fn world(&self) -> World {
            let config = format!(
                "[tools.metrics]\nurl = 'http://127.0.0.1:{}'\n\
                 [tools.metrics.templates.calls]\nquery = 'calls_total{{$account, model=$model}}'\nparameters = ['model:text']\n\
                 [tools.metrics.templates.any]\nquery = 'sum(calls_total{{$account}}) * $factor'\nparameters = ['factor:integer']\n\
                 [tools.metrics.templates.window]\nquery = 'sum(last_over_time(calls_total{{$account}}[$window]))'\nparameters = ['window:duration']\n",
                self.port
            );
            World::with_config(&config).await
        }
    }

    #[tokio::test]
    async fn another_accounts_series_cannot_be_read() {
        let prometheus = Prometheus::start().await;
        let world = prometheus.world().await;
        world.run("r2", "acct-2").await;
        let good = json!({ "query": "calls", "parameters": { "model": "m" }, "time": AT });
        let control = eventually("the samples are there", async || {
            let answer = query(&world, &good).await;
            (answer.body["result"]["result"].as_array()?.len() == 1).then_some(answer)
        })
        .await;
        assert_eq!(control.body["result"]["result"][0]["value"][1], json!("11"), "{control:?}");
        // The same query by a run of the other account: its series is there.
        let body = json!({ "runId": "r2", "callId": "c", "tool": QUERY, "args": good });
        let other = RawCall::of("/tool/exec", QUERY, body.to_string().into_bytes());
        let other = world.send(other.with("x-sluice-run", "r2").with("x-sluice-account", "acct-2")).await;
        assert_eq!(other.body["result"]["result"][0]["value"][1], json!("22"), "{other:?}");
        for model in [
            r#"m"} or calls_total{account="acct-2"#,
            r#"m\"} or calls_total{account="acct-2"#,
            "m\", account=~\".+",
            "m\"} or calls_total #",
            "m\n} or calls_total",
            "`} or calls_total",
            "m\u{0}",
            "$account",
            "{account=\"acct-2\"}",
            "m\u{2028}\"",
        ] {
            let answer =
                query(&world, &json!({ "query": "calls", "parameters": { "model": model }, "time": AT }))
                    .await;
            assert_eq!(answer.outcome(), "done", "the text is a text: {model:?} {answer:?}");
            assert_eq!(answer.body["result"]["result"], json!([]), "{model:?}: {answer:?}");
        }
        for args in [
            json!({ "query": "any", "parameters": { "factor": "1 or sum(calls_total)" }, "time": AT }),
            json!({ "query": "any", "parameters": { "factor": 1.5 }, "time": AT }),
            json!({ "query": "any", "parameters": { "factor": -1 }, "time": AT }),
            json!({ "query": "window", "parameters": { "window": "5m]) or (calls_total[5m" }, "time": AT }),
            json!({ "query": "window", "parameters": { "window": "5m\n" }, "time": AT }),
            json!({ "query": "window", "parameters": {}, "time": AT }),
            json!({ "query": "window", "time": AT }),
            json!({ "query": "calls", "parameters": { "model": "m", "account": "acct-2" }, "time": AT }),
            json!({ "query": "calls", "parameters": { "model": "m" }, "account": "acct-2" }),
            json!({ "query": "calls_total" }),
            json!({ "query": "calls", "parameters": { "model": "m" }, "time": "0&query=calls_total" }),
        ] {
            let answer = query(&world, &args).await;
            assert_eq!(answer.code(), "invalid_arguments", "{args}: {answer:?}");
        }
        for (name, parameter, value, sum) in
            [("any", "factor", json!(2), "22"), ("window", "window", json!("5m"), "11")]
        {
            let answer =
                query(&world, &json!({ "query": name, "parameters": { parameter: value }, "time": AT }))
                    .await;
            assert_eq!(answer.body["result"]["result"][0]["value"][1], json!(sum), "{answer:?}");
        }
    }
}
