//! credentials finds the one credential of a repository, and gives it to no other host.

use std::{fs, os::unix::fs::PermissionsExt as _};

use platform_runtime::{report, settings::GitHub};
use runner_git::RepoUrl;
use runner_github::{CredentialSource, Error, Permission, RepositoryName};

use crate::world::{World, repository_at, secret};

async fn token(source: &CredentialSource, repository: &RepositoryName) -> Option<String> {
    let credential = source.token_for(repository, Permission::Fetch).await.expect("it is found")?;
    assert_eq!(credential.user, "x-access-token");
    Some(credential.token.expose().to_owned())
}

#[tokio::test]
async fn a_token_belongs_to_one_host() {
    let world = World::start().await;
    let source = world.credentials();
    assert_eq!(token(&source, &world.repository()).await.as_deref(), Some(world.token.as_str()));
    let port = world.github.url.rsplit(':').next().expect("it has a port");
    for other in [
        "https://github.com".to_owned(),
        "https://gitlab.example".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        "http://127.0.0.1:1".to_owned(),
    ] {
        assert_eq!(token(&source, &repository_at(&other)).await, None, "{other}");
    }
}

#[tokio::test]
async fn addresses_of_other_hosts_are_no_repositories() {
    let world = World::start().await;
    let source = world.credentials();
    let read = |url: &str| source.repository(&RepoUrl::parse(url).expect("it is an address"));
    let own = &world.github.url;
    assert_eq!(read(&format!("{own}/octo/hello")), Ok(Some(world.repository())));
    for other in
        ["https://gitlab.example/a/b/c/d", "http://gitlab.example/a", "https://github.com/octo/hello"]
    {
        assert_eq!(read(other), Ok(None), "{other}");
    }
    let local = RepoUrl::parse_local("file:///srv/octo/hello").expect("it is an address");
    assert_eq!(source.repository(&local), Ok(None));
    assert!(read(&format!("{own}/octo/hello/pulls")).is_err());
}

#[tokio::test]
async fn a_token_comes_before_an_app() {
    let world = World::start().await;
    let token_file = Some(world.secret("token", b"  from-file\n"));
    let app = world.app_settings();
    let environment = || Some(secret("from-environment"));
    let own = world.repository();
    let settings = GitHub { token_file, ..app.clone() };
    let source = CredentialSource::open(&settings, environment()).expect("it is valid");
    assert_eq!(token(&source, &own).await.as_deref(), Some("from-file"));
    world.secret("token", b"replaced");
    assert_eq!(token(&source, &own).await.as_deref(), Some("replaced"), "the file is read each time");
    let source = CredentialSource::open(&app, environment()).expect("it is valid");
    assert_eq!(token(&source, &own).await.as_deref(), Some("from-environment"));
    let source = CredentialSource::open(&app, None).expect("it is valid");
    assert!(token(&source, &own).await.is_some_and(|token| token.starts_with("ghs_")));
    let source = CredentialSource::open(&world.settings(), None).expect("a public repository needs none");
    assert_eq!(token(&source, &own).await, None);
}

#[tokio::test]
async fn a_bad_secret_is_refused_at_the_start() {
    let world = World::start().await;
    let with_file = |content: &[u8]| {
        let token_file = Some(world.secret("token", content));
        CredentialSource::open(&GitHub { token_file, ..world.settings() }, None)
    };
    assert!(with_file(b"t0ken").is_ok(), "the control");
    for content in ["", " \n", "two words", "line\nbreak", "t\u{f6}ken"] {
        let refused = with_file(content.as_bytes()).expect_err(content);
        assert!(refused.to_string().contains("github.token_file"), "{refused}");
    }
    let refused = CredentialSource::open(&world.settings(), Some(secret("a b"))).expect_err("a blank");
    assert!(refused.to_string().contains("GITHUB_TOKEN"), "{refused}");
    let exposed = world.secret("exposed", b"t0ken");
    fs::set_permissions(&exposed, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let settings = GitHub { token_file: Some(exposed), ..world.settings() };
    let refused = CredentialSource::open(&settings, None).expect_err("others can read it");
    assert!(matches!(refused, Error::SecretFile { .. }), "{}", report::chain(&refused));
}

#[tokio::test]
async fn no_form_of_a_credential_shows_it() {
    let world = World::start().await;
    let source = world.credentials();
    let credential = source.token_for(&world.repository(), Permission::Push).await.expect("it is found");
    let mut order = world.order();
    order.labels.clear();
    world.github.revoke_tokens();
    let refused = world.pull_requests().ensure(&order).await.expect_err("the token is revoked");
    let shown = [
        format!("{source:?} {credential:?} {refused:?} {refused}"),
        format!("{:?}", world.pull_requests()),
        report::chain(&refused),
    ];
    assert!(!shown.concat().contains(&world.token), "{shown:?}");
    let sent = world.github.exchanges().pop().expect("it asked");
    assert_eq!(sent.headers["authorization"], format!("Bearer {}", world.token), "the control");
}
