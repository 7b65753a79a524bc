//! `sluice init` without a terminal: what it writes, what it refuses, and that nothing is left of what it refuses.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use bench::upstream::ScriptedUpstream;
use harness::{
    canary::CANARY_KEY,
    key_rejecting_upstream::KeyRejectingUpstream,
    process::binary,
    sluice::{Outcome, interrupt},
    terminal::converse,
};
use tokio::{net::TcpListener, process::Command};

/// A directory for a configuration.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("sw-init-").tempdir_in("/tmp").unwrap())
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("etc/sluice.toml")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("etc/upstream.key")
    }

    /// Returns a file with the canary as key.
    fn given_key(&self) -> String {
        let path = self.0.path().join("given");
        fs::write(&path, format!("{CANARY_KEY}\n")).unwrap();
        path.display().to_string()
    }

    /// Runs a command of `sluice` on this configuration.
    async fn sluice(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        let mut command = Command::new(binary("sluice"));
        command.args(arguments).arg("--config").arg(self.config()).env_clear();
        let output = command.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
        let outcome = Outcome::from(output.output().await.unwrap());
        assert!(!format!("{outcome:?}").contains(CANARY_KEY), "the key is shown: {outcome:?}");
        outcome
    }

    async fn init(&self, arguments: &[&str]) -> Outcome {
        self.sluice(&[&["init"], arguments].concat(), &[]).await
    }

    fn is_untouched(&self) -> bool {
        !self.0.path().join("etc").exists()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn init_writes_a_valid_configuration() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    let url = format!("{}/v1/", upstream.base_url());
    let wrote = place
        .init(&["--upstream", &url, "--key-file", &place.given_key(), "--model", "fake", "--json"])
        .await;
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    let report = wrote.result();
    assert_eq!(report["default_model"], "fake");
    assert_eq!(report["upstream"]["base_url"], upstream.base_url(), "a path is left out");
    let next: Vec<_> = report["next"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert_eq!(next[0], format!("export SLUICE_CONFIG={}", place.config().display()), "{next:?}");
    assert_eq!(next[1], "sluice up &", "{next:?}");
    assert_eq!((mode(&place.config()), mode(&place.key())), (0o644, 0o600));
    assert_eq!(fs::read_to_string(place.key()).unwrap(), CANARY_KEY);
    assert!(!fs::read_to_string(place.config()).unwrap().contains(CANARY_KEY));
    let checked = place.sluice(&["config", "check"], &[]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let files = fs::read_dir(place.config().parent().unwrap()).unwrap().count();
    assert_eq!(files, 2, "nothing else is left");
}

#[tokio::test]
async fn init_takes_the_key_of_the_environment() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    let environment = [("LITELLM_MASTER_KEY", CANARY_KEY), ("LITELLM_BASE_URL", &upstream.base_url())];
    let wrote =
        place.sluice(&["init", "--yes", "--agent", "sandbox:agent", "--agent", "codex"], &environment).await;
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    for words in
        ["the key from LITELLM_MASTER_KEY", "  unset LITELLM_MASTER_KEY\n", "  sluice agents add codex\n"]
    {
        assert!(wrote.stdout.contains(words), "{words} is not in {}", wrote.stdout);
    }
    assert!(!wrote.stdout.contains("agents add sandbox:agent"), "it ships: {}", wrote.stdout);
    assert_eq!(fs::read_to_string(place.key()).unwrap(), CANARY_KEY);
}

#[tokio::test]
async fn init_names_all_that_is_missing_at_once() {
    let place = Place::new();
    let missing = place.init(&[]).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    for words in ["the upstream is missing: --upstream URL", "the upstream's key is missing: --key-file FILE"]
    {
        assert!(missing.stderr.contains(words), "{words} is not in {}", missing.stderr);
    }
    let unusable = place.init(&["--upstream", "litellm:4000", "--key-file", "/nowhere/key"]).await;
    for words in ["--upstream: not a base URL", "--key-file /nowhere/key: cannot be read"] {
        assert!(unusable.stderr.contains(words), "{words} is not in {}", unusable.stderr);
    }
    assert!(place.is_untouched());
}

/// The upstream repeats the key in its answer, which is not shown.
#[tokio::test]
async fn init_writes_no_key_that_is_refused() {
    let rejecting = KeyRejectingUpstream::start().await;
    let place = Place::new();
    let (url, key) = (rejecting.base_url(), place.given_key());
    let arguments = ["--upstream", &url, "--key-file", &key, "--yes"];
    let refused = place.init(&arguments).await;
    assert_eq!(refused.code, Some(69), "{refused:?}");
    assert!(refused.stderr.contains(&format!("refuses the key from {key} (status 401)")), "{refused:?}");
    assert!(place.is_untouched(), "nothing is left");
    let forced = place.init(&[&arguments[..], &["--force"]].concat()).await;
    assert_eq!((forced.code, mode(&place.key())), (Some(0), 0o600), "the control: {forced:?}");
    let down = Place::new();
    let arguments = ["--upstream", "http://127.0.0.1:9", "--no-key", "--yes"];
    let unreachable = down.init(&arguments).await;
    assert_eq!(unreachable.code, Some(69), "{unreachable:?}");
    let said = "http://127.0.0.1:9 cannot be reached: no connection to 127.0.0.1:9: Connection refused";
    assert!(unreachable.stderr.contains(said), "{unreachable:?}");
    assert!(down.is_untouched());
}

#[tokio::test]
async fn init_tells_of_litellm_without_a_database() {
    let upstream = KeyRejectingUpstream::without_database().await;
    let place = Place::new();
    let (url, key) = (upstream.base_url(), place.given_key());
    let arguments = ["--upstream", &url, "--key-file", &key, "--yes"];
    let refused = place.init(&arguments).await;
    assert_eq!((refused.code, place.is_untouched()), (Some(69), true), "{refused:?}");
    for words in
        [&format!("cannot look up the key from {key}"), "give LiteLLM's master key", "`database_url`"]
    {
        assert!(refused.stderr.contains(words), "{words} is not in {}", refused.stderr);
    }
    let forced = place.init(&[&arguments[..], &["--force"]].concat()).await;
    assert_eq!(forced.code, Some(0), "control: {forced:?}");
    assert!(forced.stdout.contains("note      the key is not proven"), "{forced:?}");
}

/// The scripted upstream lists its models to everyone, as some model APIs do.
#[tokio::test]
async fn init_says_that_a_key_is_not_proven() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    let (url, key) = (upstream.base_url(), place.given_key());
    let wrote = place.init(&["--upstream", &url, "--key-file", &key, "--yes"]).await;
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    assert!(wrote.stdout.contains("note      the key is not proven"), "{wrote:?}");
    let keyless = Place::new().init(&["--upstream", &url, "--no-key", "--yes"]).await;
    assert_eq!(keyless.code, Some(0), "control: {keyless:?}");
    assert!(!keyless.stdout.contains("proven"), "control: there is no key: {keyless:?}");
}

#[tokio::test]
async fn init_prints_commands_that_work_in_succession() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    let url = upstream.base_url();
    let given = ["--upstream", &url, "--no-key", "--model", "fake", "--json", "--agent", "codex"];
    let unknown = place.init(&[&given[..], &["--agent", "a; reboot"]].concat()).await;
    assert_eq!((unknown.code, place.is_untouched()), (Some(2), true), "{unknown:?}");
    let known = "--agent a; reboot: no such agent; there are claude-code, codex,";
    assert!(unknown.stderr.contains(known), "{unknown:?}");
    let wrote = place.init(&given).await;
    let next = wrote.result()["next"].clone();
    let next: Vec<_> = next.as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    let export = format!("export SLUICE_CONFIG={}", place.config().display());
    assert_eq!(next[..3], [&*export, "sluice agents add codex", "sluice up &"], "{next:?}");
}

/// The upstream takes the connection and never answers, until the user has enough.
#[tokio::test]
async fn an_interrupted_check_leaves_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let place = Place::new();
    let mut command = Command::new(binary("sluice"));
    command.args(["init", "--upstream", &url, "--no-key", "--yes", "--config"]).arg(place.config());
    let mut init = command.stdin(std::process::Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let (asked, _) = silent.accept().await.unwrap();
    interrupt(&init);
    let status = init.wait().await.unwrap();
    assert!(!status.success(), "{status}");
    assert!(place.is_untouched(), "nothing is left");
    drop(asked);
}

#[tokio::test]
async fn init_writes_no_key_without_a_configuration() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    fs::create_dir_all(place.config()).unwrap();
    let url = upstream.base_url();
    let key = place.given_key();
    let refused = place.init(&["--upstream", &url, "--key-file", &key, "--yes", "--force"]).await;
    assert_eq!((refused.code, place.key().exists()), (Some(2), false), "{refused:?}");
    assert!(refused.stderr.contains("sluice.toml is not a regular file"), "{refused:?}");
}

#[tokio::test]
async fn init_shows_no_password_of_an_address() {
    let place = Place::new();
    let refused = place.init(&["--upstream", "http://user:hunter2@litellm:4000", "--no-key", "--yes"]).await;
    assert_eq!((refused.code, refused.stderr.contains("hunter2")), (Some(2), false), "{refused:?}");
    assert!(refused.stderr.contains("it has a user or a password"), "{refused:?}");
}

#[tokio::test]
async fn init_replaces_nothing_unless_forced() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    fs::create_dir(place.config().parent().unwrap()).unwrap();
    fs::write(place.config(), "mine").unwrap();
    fs::write(place.key(), "mine").unwrap();
    let (url, key) = (upstream.base_url(), place.given_key());
    let arguments = ["--upstream", &url, "--key-file", &key, "--model", "fake"];
    let refused = place.init(&arguments).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for path in [place.config(), place.key()] {
        assert!(refused.stderr.contains(&format!("{} exists: --force", path.display())), "{refused:?}");
        assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    }
    let forced = place.init(&[&arguments[..], &["--force"]].concat()).await;
    assert_eq!(forced.code, Some(0), "the control: {forced:?}");
    // The key's own file does not count as another key.
    fs::remove_file(place.config()).unwrap();
    let in_place = place.key().display().to_string();
    let again = place.init(&["--upstream", &url, "--key-file", &in_place, "--model", "fake"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("upstream.key, as it was"), "{again:?}");
}

#[tokio::test]
async fn init_takes_only_models_that_are_offered() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let place = Place::new();
    let url = upstream.base_url();
    let given = ["--upstream", &url, "--no-key"];
    let other = place.init(&[&given[..], &["--model", "nope"]].concat()).await;
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("--model nope: the upstream does not offer it, but "), "{other:?}");
    let none = place.init(&given).await;
    assert!(none.stderr.contains("the default model is missing: --model MODEL, or --yes"), "{none:?}");
    assert!(!place.config().exists());
    let first = place.init(&[&given[..], &["--yes"]].concat()).await;
    assert_eq!(first.code, Some(0), "the control: {first:?}");
}

/// The terminal shows what is typed again afterwards.
#[tokio::test]
async fn a_stopped_dialogue_writes_nothing() {
    let place = Place::new();
    let upstream = ScriptedUpstream::start().await.unwrap();
    let line = format!(
        "{} init --config {}; test $? = 130 && stty -a | grep -q ' echo '",
        binary("sluice").display(),
        place.config().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]);
    let typed = format!("{CANARY_KEY}\x03");
    let url = format!("{}\n", upstream.base_url());
    let answers = [("Upstream: ", url.as_str()), ("Key of the upstream", typed.as_str())];
    let shown = converse(shell, &answers).await;
    assert!(shown.contains("stopped; nothing was written"), "{shown}");
    assert!(!shown.contains(CANARY_KEY), "the key is shown: {shown}");
    assert!(place.is_untouched());
}

/// A person is not sent for a key before the address is known to be right.
#[tokio::test]
async fn the_address_is_checked_before_the_key() {
    let place = Place::new();
    let init = |options: &str, code: u8| {
        let (sluice, config) = (binary("sluice"), place.config());
        let line =
            format!("{} init {options} --config {}; test $? = {code}", sluice.display(), config.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]);
        shell
    };
    let down = "http://127.0.0.1:9\n";
    let shown = converse(init("", 69), &[("Upstream: ", down)]).await;
    assert!(shown.contains("http://127.0.0.1:9 cannot be reached"), "{shown}");
    assert!(!shown.contains("Key of the upstream"), "the key is not asked for: {shown}");
    assert!(place.is_untouched());
    // Control: a person who knows that it is down for now gives the key nevertheless.
    let shown = converse(init("--force", 0), &[("Upstream: ", down), ("Key of the upstream", "\n")]).await;
    assert!(place.config().exists(), "{shown}");
}
