//! Tests run tokens as others make them from the specification: Node and OpenSSL mint tokens that Sluicegate takes, and
//! take those that Sluicegate mints.

use std::{
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    id::{RunId, SecretId},
    secret::Secret,
    token::{NamedSecret, RunToken, Secrets, SignedToken, TokenError, UnixSeconds},
};

/// Secret that is not ASCII only: every implementation must take its UTF-8 bytes.
const SECRET: &str = "schlüssel: 16 bytes or more";

/// The specification's function, word for word but for its types.
const NODE_MINTS: &str = r#"
const { createHmac } = require("crypto");
function mintRunToken(runId, attempt, secret) {
  const expiry = Math.floor(Date.now() / 1000) + 86400; // 24h
  const data = `${runId}|${attempt}|${expiry}`;
  const sig = createHmac("sha256", secret).update(data).digest("base64url");
  return `${data}.${sig}`;
}
process.stdout.write(mintRunToken("run-1", 3, process.env.SECRET));
"#;

/// The specification's check, which it writes in Lua.
const NODE_VERIFIES: &str = r#"
const { createHmac } = require("crypto");
const [, data, sig] = /^(.+)\.(.+)$/.exec(process.env.TOKEN);
const [run, attempt, expiry] = data.split("|");
const expected = createHmac("sha256", process.env.SECRET).update(data).digest("base64url");
const holds = Number(expiry) >= Math.floor(Date.now() / 1000) && expected === sig;
process.stdout.write(holds ? `${run}/${attempt}` : "refused");
"#;

/// Script that mints a token in the shell; the way in which OpenSSL receives the key is left open.
const OPENSSL_MINTS: &str = r#"
signature=$(printf %s "$DATA" | openssl dgst -sha256 -binary KEY | base64 | tr '+/' '-_' | tr -d '=\n')
printf '%s.%s' "$DATA" "$signature"
"#;

/// Returns the output of `program` for `script`.
fn script(program: &[&str], script: &str, variables: &[(&str, &str)]) -> String {
    let (name, flags) = program.split_first().unwrap();
    let mut command = Command::new(name);
    command.args(flags).arg(script).env("SECRET", SECRET).envs(variables.iter().copied());
    let output = command.output().unwrap_or_else(|error| panic!("{name}: {error}: run `make setup`"));
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
}

fn secrets(text: &str) -> Secrets {
    let id = SecretId::parse("s").unwrap();
    Secrets::new(vec![NamedSecret::new(id, &Secret::new(text.to_owned())).unwrap()]).unwrap()
}

/// Returns the run and the attempt that `token` proves.
fn bearer(token: &str, secrets: &Secrets) -> Result<String, TokenError> {
    let claims = SignedToken::parse(token)?.verify(secrets, now(), Duration::ZERO)?.claims();
    Ok(format!("{}/{}", claims.run(), claims.attempt()))
}

#[test]
fn a_token_by_the_specified_function_is_valid() {
    let token = script(&["node", "-e"], NODE_MINTS, &[]);
    assert_eq!(bearer(&token, &secrets(SECRET)).as_deref(), Ok("run-1/3"), "{token}");
    assert_eq!(bearer(&token, &secrets("another secret of ours")), Err(TokenError::Invalid));
    let left = SignedToken::parse(&token).unwrap().claims().expiry().0 - now().0;
    assert!((86_300..=86_400).contains(&left), "{left} s are left");
}

#[test]
fn a_token_that_openssl_mints_is_taken() {
    let data = format!("run-1|3|{}", now().0 + 60);
    for key in [r#"-hmac "$SECRET""#, r#"-mac HMAC -macopt key:"$SECRET""#] {
        let token = script(&["bash", "-c"], &OPENSSL_MINTS.replace("KEY", key), &[("DATA", &data)]);
        assert_eq!(bearer(&token, &secrets(SECRET)).as_deref(), Ok("run-1/3"), "{key}: {token}");
        let forged = token.replace("|3|", "|4|");
        assert_eq!(bearer(&forged, &secrets(SECRET)), Err(TokenError::Invalid), "{key}: {forged}");
    }
}

#[test]
fn a_token_that_we_mint_is_taken_by_node() {
    let takes = |token: &str| script(&["node", "-e"], NODE_VERIFIES, &[("TOKEN", token)]);
    let ours = |expiry| {
        let token = RunToken { run_id: RunId::parse("run-1").unwrap(), attempt: 3, expiry };
        token.mint(secrets(SECRET).minting().unwrap()).expose().to_owned()
    };
    let good = ours(UnixSeconds(now().0 + 60));
    assert_eq!(takes(&good), "run-1/3");
    assert_eq!(takes(&good.replace("run-1", "run-2")), "refused");
    assert_eq!(takes(&ours(UnixSeconds(now().0 - 60))), "refused");
}
