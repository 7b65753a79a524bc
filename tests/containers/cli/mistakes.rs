//! Tests what people read who made a mistake: the message of each is in a golden file, which reviews read whole.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    net::TcpListener,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
};

use harness::{Outcome, World};

use crate::sandbox::shell_agent;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/containers/cli/golden/mistakes.txt");
const CONFIG: &str = "\
[prices.priced]
input = '1'
output = '2'
[accounts.capped]
cost = '1'
[accounts.spent]
requests = 1
";

/// Mistakes in the configuration and in the options that override it.
const CONFIGURATION: &[(&str, &[&str])] = &[
    ("a configuration file that does not exist", &["config", "check", "--config", "/nowhere/sluice.toml"]),
    ("an unknown setting", &["config", "check", "--set", "proxy.colour=red"]),
    ("a word for a number", &["config", "check", "--set", "proxy.threads=many"]),
    ("a time without a unit", &["config", "check", "--set", "proxy.drain_timeout=20"]),
    ("a URL that is none", &["config", "check", "--set", "upstream.base_url=ftp://litellm"]),
    ("no value in --set", &["config", "check", "--set", "nonsense"]),
    ("an address without a port", &["config", "check", "--set", "api.listen=localhost"]),
    ("a store of another kind", &["runs", "ls", "--set", "store.url=mysql://x"]),
    ("a store in a directory that cannot be", &["runs", "ls", "--set", "store.url=sqlite:///proc/no/s.db"]),
];

/// Mistakes in a request for a run.
const REQUESTS: &[(&str, &[&str])] = &[
    ("an unknown agent", &["run", "--agent", "no:one", "q"]),
    ("a name that is not an agent", &["run", "--agent", "reviewer", "q"]),
    ("a mistyped agent", &["run", "--agent", "test:shh", "q"]),
    ("a mistyped model", &["run", "--model", "fkae", "q"]),
    ("a model with a blank", &["run", "--model", "two words", "q"]),
    ("an empty question", &["run", ""]),
    ("a workspace of everything", &["run", "--workspace", "/", "q"]),
    ("a history that does not exist", &["run", "--history", "/nowhere/said.json", "q"]),
    ("a limit of no dollars", &["run", "--cost", "0", "q"]),
    ("a negative limit", &["run", "--total-tokens", "-5", "q"]),
    ("a model without a price under --cost", &["run", "--cost", "1", "q"]),
    ("a model without a price under a limit of the account", &["run", "--account", "capped", "q"]),
    ("a model without a price, for a program", &["run", "--cost", "1", "--json", "q"]),
    ("a usage that cannot be parsed, for a program", &["run", "--json", "--cost", "much", "q"]),
    ("a missing argument, for a program", &["audit", "show", "--json"]),
    ("a priority above that of the account", &["run", "--detach", "--priority", "high", "q"]),
    ("a run id of another request", &["run", "--detach", "--run-id", "nightly-1", "--account", "other", "q"]),
    ("no Docker", &["run", "--set", "sandbox.docker_socket=/nowhere/docker.sock", "q"]),
    ("no Docker, for a program", &["run", "--json", "--set", "sandbox.docker_socket=/nowhere/d.sock", "q"]),
];

/// Mistakes in the names of things.
const NAMES: &[(&str, &[&str])] = &[
    ("an unknown run", &["runs", "show", "no-such-run"]),
    ("an unknown run, for a program", &["runs", "show", "no-such-run", "--json"]),
    ("a part of several ids", &["runs", "show", "nightly"]),
    ("a text that is not a run id", &["runs", "show", "Not A Run"]),
    ("no run", &["runs", "show"]),
    ("an unknown run to cancel", &["runs", "cancel", "no-such-run"]),
    ("an unknown run to limit", &["limit", "--run", "no-such-run", "--requests", "5"]),
    ("nothing to limit", &["limit", "--run", "nightly-1"]),
    ("an unknown account", &["usage", "--account", "acct-99"]),
    ("an unknown call", &["audit", "show", "0123456789ab"]),
    ("too little of a call's id", &["audit", "show", "0123"]),
    ("a run without calls", &["audit", "show", "--run", "nightly-1"]),
    ("a run that is not open", &["audit", "trace", "nightly-1"]),
    ("a span that is empty", &["audit", "stats", "--from", "1h", "--to", "2h"]),
    ("a time that is none", &["audit", "stats", "--from", "yesterday"]),
    ("an unknown outcome", &["audit", "tail", "--outcome", "nonsense"]),
    ("a file in no directory", &["audit", "export", "--format", "csv", "-o", "/nowhere/x"]),
    ("a backup in no directory", &["backup", "/nowhere/b"]),
    ("a token as an argument", &["token", "inspect", "abc"]),
    ("a token without a secret", &["token", "mint", "--run", "run-1"]),
    ("an account that is not frozen", &["thaw", "--account", "acct-99"]),
    ("a mistyped model to freeze", &["freeze", "--model", "fkae"]),
    ("an unknown gateway", &["gateway", "check", "nope"]),
];

/// Mistakes that a run meets in its sandbox.
const RUNS: &[(&str, &[&str])] = &[
    ("an unknown image", &["run", "--run-id", "r-image", "--image", "no-such-image:1", "q"]),
    ("a frozen account", &["run", "--run-id", "r-frozen", "--account", "frozen", "q"]),
    ("a limit that is used up", &["run", "--run-id", "r-spent", "--account", "spent", "q"]),
    (
        "a model that the upstream refuses",
        &["run", "--run-id", "r-refused", "--model", "fake-status400", "q"],
    ),
    ("an agent that fails", &["run", "--run-id", "r-agent", "--agent", "test:sh", "q"]),
];

/// Mistakes that come to light without a proxy.
const NO_PROXY: &[(&str, &[&str])] = &[
    ("no proxy", &["audit", "tail"]),
    ("no proxy, for a program", &["usage", "--json"]),
    ("no proxy for a run", &["run", "q"]),
];

/// Text of all mistakes and their messages.
struct Report {
    text: String,
    root: String,
}

impl Report {
    fn add(&mut self, title: &str, arguments: &[&str], outcome: &Outcome) {
        let words: Vec<_> = arguments.iter().map(|word| shown(word)).collect();
        let output = [outcome.stdout.as_str(), outcome.stderr.as_str()].concat();
        let output = output.replace(&self.root, "DIR");
        let code = outcome.code.unwrap_or(-1);
        self.text += &format!("# {title}\n$ sluice {}\n{output}exit code {code}\n\n", words.join(" "));
    }

    async fn add_all(&mut self, world: &World, mistakes: &[(&str, &[&str])]) {
        for (title, arguments) in mistakes {
            let outcome = world.sluice().run(arguments).await;
            self.add(title, arguments, &outcome);
        }
    }
}

/// Returns a word as a person would type it.
fn shown(word: &str) -> String {
    if word.is_empty() || word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

async fn world() -> World {
    let world = World::with(&format!("{CONFIG}{}", shell_agent("echo trouble >&2; exit 3", ""))).await;
    for run in ["nightly-1", "nightly-2"] {
        let stored = world.sluice().run(&["run", "--detach", "--run-id", run, "q"]).await;
        assert_eq!(stored.code, Some(0), "{stored:?}");
    }
    let frozen = world.sluice().run(&["freeze", "--account", "frozen"]).await;
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    let spent = world.sluice().run(&["run", "--run-id", "r-first", "--account", "spent", "q"]).await;
    assert_eq!(spent.code, Some(0), "control: {spent:?}");
    world
}

/// Adds the mistakes that need more than arguments.
async fn add_special(report: &mut Report, world: &World) {
    let latin = world.path().join("latin1");
    fs::write(&latin, b"caf\xe9?").unwrap();
    let outcome = world.sluice().stdin(File::open(latin).unwrap()).run(&["run", "-"]).await;
    report.add("a question that is not UTF-8", &["run", "-"], &outcome);

    let word = OsStr::from_bytes(b"caf\xe9");
    let outcome = world.sluice().argument(word).run(&["--json"]).await;
    report.add("an argument that is not UTF-8, for a program", &["caf\u{fffd}", "--json"], &outcome);

    let key = world.path().join("key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    report.add_all(world, &[("a key file that every user can read", &["reload"])]).await;
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setting = format!("api.listen={address}");
    let mut outcome = world.sluice().run(&["up", "--set", &setting]).await;
    outcome.stderr = outcome.stderr.replace(&address, "127.0.0.1:PORT");
    outcome.stdout = outcome.stdout.replace(&address, "127.0.0.1:PORT");
    report.add("a port that is in use", &["up", "--set", "api.listen=127.0.0.1:PORT"], &outcome);
}

/// To change a message, remove the golden file, run this test, and read the difference.
#[tokio::test]
async fn mistakes_say_what_happened_and_the_fix() {
    let mut world = world().await;
    let mut report = Report { text: String::new(), root: world.path().display().to_string() };
    for mistakes in [CONFIGURATION, REQUESTS, NAMES, RUNS] {
        report.add_all(&world, mistakes).await;
    }
    add_special(&mut report, &world).await;
    world.stop_proxy().await;
    report.add_all(&world, NO_PROXY).await;
    assert!(report.text.matches("\n$ sluice ").count() >= 30, "{}", report.text);
    if !Path::new(GOLDEN).exists() {
        fs::create_dir_all(Path::new(GOLDEN).parent().unwrap()).unwrap();
        fs::write(GOLDEN, &report.text).unwrap();
        panic!("{GOLDEN} was missing and is written: read it");
    }
    let golden = fs::read_to_string(GOLDEN).unwrap();
    for (line, (said, expected)) in report.text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(said, expected, "line {} of {GOLDEN}", line + 1);
    }
    assert_eq!(report.text.lines().count(), golden.lines().count(), "{}", report.text);
}
