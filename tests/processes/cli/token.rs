//! Tests `sluice token`: the tokens it makes are valid, its reports on others are true, and it prints no secret.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
};

use harness::{
    Outcome, World,
    canary::{self, CANARY_SECRETS},
    eventually,
    sluice::Sluice,
};
use serde_json::{Value, json};

const SECRET: &str = CANARY_SECRETS[0];
const OTHER: &str = CANARY_SECRETS[1];

fn with_secret(world: &World, secret: &str) -> Sluice {
    world.sluice().env("PROXY_SHARED_SECRET", secret)
}

async fn mint(sluice: Sluice, flags: &[&str]) -> String {
    let outcome = sluice.run(&[&["token", "mint", "--run", "run-1"], flags].concat()).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    canary::hand_out(outcome.stdout.trim());
    outcome.stdout
}

/// Returns the answer of `sluice` to `text` on its standard input.
async fn inspect(world: &World, sluice: Sluice, text: &str, flags: &[&str]) -> Outcome {
    let file = world.path().join("token");
    fs::write(&file, text).unwrap();
    sluice.stdin(File::open(file).unwrap()).run(&[&["token", "inspect"], flags].concat()).await
}

#[tokio::test]
async fn a_token_says_its_run_and_until_when_it_holds() {
    let world = World::start().await;
    let token = mint(with_secret(&world, SECRET), &["--attempt", "2", "--ttl", "1h"]).await;
    assert!(token.starts_with("run-1|2|") && token.lines().count() == 1, "{token}");
    for flags in [&["--json"][..], &["--json", "-"]] {
        let outcome = inspect(&world, with_secret(&world, SECRET), &token, flags).await;
        let found = outcome.result();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for (key, value) in
            [("ok", json!(true)), ("run", json!("run-1")), ("attempt", json!(2)), ("secret", json!("env"))]
        {
            assert_eq!(found[key], value, "{key}: {found}");
        }
        let left = found["expires_in_seconds"].as_u64().unwrap();
        assert!((3500..=3600).contains(&left), "{found}");
    }
    let shown = inspect(&world, with_secret(&world, SECRET), &token, &[]).await.stdout;
    let begins = ["run      run-1", "attempt  2", "expiry   20", "secret   env", "holds    yes"];
    assert_eq!(shown.lines().count(), begins.len(), "{shown}");
    assert!(shown.lines().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{shown}");
    let day = inspect(
        &world,
        with_secret(&world, SECRET),
        &mint(with_secret(&world, SECRET), &[]).await,
        &["--json"],
    )
    .await;
    assert!(day.result()["expires_in_seconds"].as_u64().unwrap() > 86_300, "24 h if not said: {day:?}");
}

#[tokio::test]
async fn a_token_that_does_not_hold_is_told_why() {
    let world = World::start().await;
    let token = mint(with_secret(&world, SECRET), &[]).await;
    let forged = token.replace("|0|", "|1|");
    let cut = &token[..token.len() - 2];
    let too_long = "a".repeat(100_000);
    let cases: [(&str, Sluice, &str, Value); 7] = [
        (&token, with_secret(&world, OTHER), "token_invalid", json!("run-1")),
        (&token, world.sluice(), "token_invalid", json!("run-1")),
        (&forged, with_secret(&world, SECRET), "token_invalid", json!("run-1")),
        (cut, with_secret(&world, SECRET), "token_malformed", Value::Null),
        ("\n", with_secret(&world, SECRET), "token_malformed", Value::Null),
        (&too_long, with_secret(&world, SECRET), "token_malformed", Value::Null),
        ("run-1|0|1|\u{1b}]0;title\u{7}.x", with_secret(&world, SECRET), "token_malformed", Value::Null),
    ];
    assert_eq!(inspect(&world, with_secret(&world, SECRET), &token, &[]).await.code, Some(0));
    for (text, sluice, failure, run) in cases {
        let outcome = inspect(&world, sluice, text, &["--json"]).await;
        let found = outcome.result();
        assert_eq!(
            (outcome.code, &found["failure"], &found["run"]),
            (Some(1), &json!(failure), &run),
            "{outcome:?}"
        );
        assert!(!outcome.stdout.contains('\u{1b}'), "{outcome:?}");
    }
    let short = mint(with_secret(&world, SECRET), &["--ttl", "1s"]).await;
    let skew = |skew| with_secret(&world, SECRET).env("SLUICE_PROXY_TOKEN_LEEWAY", skew);
    let late = || inspect(&world, skew("0s"), &short, &[]);
    let late = eventually("it has expired", late, |late| late.code == Some(1)).await;
    assert_eq!(inspect(&world, skew("1h"), &short, &[]).await.code, Some(0));
    assert!(
        late.stdout.contains(" ago\nsecret   env\nholds    no: ") && late.stdout.contains("(token_expired)"),
        "{late:?}"
    );
}

/// Old and new tokens hold together for as long as both secrets are configured.
#[tokio::test]
async fn a_secret_is_rotated_without_rejected_tokens() {
    let world = World::start().await;
    let path = world.path().join("token-secrets");
    let with_file = |text: &str| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        with_secret(&world, "not asked, there is a file")
            .env("SLUICE_PROXY_TOKEN_SECRETS_FILE", path.to_str().unwrap())
    };
    let (old, new) = (format!("old:{SECRET}\n"), format!("new:{OTHER}\n"));
    let before = mint(with_file(&old), &[]).await;
    for (text, signer, code) in
        [(old.clone() + &new, "old", 0), (new.clone() + &old, "old", 0), (new.clone(), "", 1)]
    {
        let outcome = inspect(&world, with_file(&text), &before, &["--json"]).await;
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert_eq!(outcome.result()["secret"].as_str().unwrap_or_default(), signer);
    }
    let after = mint(with_file(&(new.clone() + &old)), &[]).await;
    assert_eq!(inspect(&world, with_file(&new), &after, &["--json"]).await.result()["secret"], "new");

    let exposed = with_file(&new);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let outcome = exposed.run(&["token", "mint", "--run", "run-1"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("chmod o=") && !outcome.stderr.contains("canary"), "{outcome:?}");
}

#[tokio::test]
async fn token_mistakes_show_no_secret() {
    let world = World::start().await;
    let sluice = || with_secret(&world, SECRET);
    let cases: [(Sluice, &[&str], &str); 8] = [
        (world.sluice(), &["mint", "--run", "run-1"], "proxy.token_secrets_file"),
        (with_secret(&world, "canary-short"), &["mint", "--run", "run-1"], "shorter than 16 bytes"),
        (sluice(), &["mint"], "--run"),
        (sluice(), &["mint", "--run", "Run-1"], "is not a run id"),
        (sluice(), &["mint", "--run", "run-1", "--ttl", "0s"], "at least a second"),
        (sluice(), &["mint", "--run", "run-1", "--ttl", "9000years"], "9999"),
        (sluice(), &["mint", "--run", "run-1", "--attempt", "-1"], "-1"),
        (sluice(), &["inspect", "run-1|0|1.canary"], "standard input"),
    ];
    for (sluice, arguments, words) in cases {
        let outcome = sluice.env("SLUICE_LOG", "trace").run(&[&["token"], arguments].concat()).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {words} is not in {}", outcome.stderr);
        assert!(!outcome.stderr.contains("canary"), "{arguments:?}: {}", outcome.stderr);
    }
}
