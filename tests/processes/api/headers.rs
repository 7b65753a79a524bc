//! Headers by which browsers and caches keep answers to themselves.

use harness::served::Served;
use http::Method;
use rustix::process::Signal;

/// Errors and answers without a credential have them, too.
#[tokio::test]
async fn answers_are_neither_kept_nor_framed() {
    let there = Served::with("").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    for (client, path, status) in [
        (&there.api, "/healthz", 200),
        (&there.api, "/api/v1/runs", 401),
        (&there.api, "/nowhere", 404),
        (&app, "/api/v1/runs", 200),
        (&app, "/v1/models", 200),
    ] {
        let answer = client.request(Method::GET, path, "".into()).await.unwrap();
        assert_eq!(answer.status, status, "{path}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("x-content-type-options", "nosniff"),
        ] {
            let found: Vec<_> = answer.headers.get_all(name).iter().collect();
            assert_eq!(found, [value], "{path}: {name}");
        }
    }
    there.up.stop(Signal::TERM).await;
}
