//! The book's tutorials, executed as they are written: each page is one shell session.

use std::{fs, process::Stdio, time::Duration};

use bench::upstream::ScriptedUpstream;
use harness::{
    World,
    book::{Page, own_state},
    bridge::free_port,
};
use platform_runtime::config::Environment;
use tokio::{process::Command, time::timeout};

/// Longest that the demonstration may take, which builds the programs with features of their own.
const DEMO_TIMEOUT: Duration = Duration::from_secs(220);

/// Variables of this test's package. Build scripts read them: with these, cargo builds half of the workspace again.
const OF_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

fn port() -> String {
    free_port().port().to_string()
}

fn borrowed<'e>(environment: &'e [(&'static str, String)]) -> Vec<(&'e str, &'e str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test]
async fn the_first_run_works_as_written() {
    let page = Page::read("docs/src/tutorials/first-run.md").with("18080", &port());
    let page = page.moved("/tmp/sluicegate-tour");
    fs::create_dir(format!("{}/tmp", page.root())).unwrap();
    let stdout = page.succeeds(&[]).await;
    assert!(stdout.contains("exit code 1"), "a frozen account's run fails: {stdout}");
    assert!(!fs::exists(format!("{}/tmp/sluicegate-tour", page.root())).unwrap(), "it cleans up");
}

#[tokio::test]
async fn a_first_agent_works_as_written() {
    let page = Page::read("docs/src/tutorials/your-first-agent.md").with("18081", &port());
    let name = page.root.path().file_name().unwrap().to_string_lossy().to_ascii_lowercase();
    let page =
        page.moved("/tmp/sluicegate-agent").with("reviewer:1", &format!("{name}:1")).with("4180", &port());
    fs::create_dir(format!("{}/tmp", page.root())).unwrap();
    let stdout = page.succeeds(&[]).await;
    assert!(stdout.contains("exit code 1"), "a run over its limit fails: {stdout}");
}

#[tokio::test]
async fn the_nginx_template_is_replaced_as_written() {
    let world = World::start().await;
    let page = Page::read("docs/src/tutorials/replace-the-nginx-template.md");
    let root = page.root();
    let page = page.with("/tmp/sluice-proxy.log", &format!("{root}/proxy.log")).moved("/etc/sluicegate");
    let page = page.with("/etc/sluicegate /llm-sock\n", &format!("/etc/sluicegate {root}/llm-sock\n"));
    let page = page.with("-v /llm-sock:", &format!("-v {root}/llm-sock:"));
    let page = page.with("\"/llm-sock/llm.sock\"", &format!("\"{root}/llm-sock/llm.sock\""));
    let mut page = page.with("http://litellm:4000", &world.upstream.base_url());
    // The page has the reader save this file between two blocks of commands.
    let config =
        page.text.split_once("<!-- standalone -->\n```toml\n").unwrap().1.split_once("```").unwrap().0;
    let save = format!("\n```sh\ncat > {root}/etc/sluicegate/sluice.toml <<'TOML'\n{config}TOML\n```\n");
    page.text = page.text.replacen("## 3.", &format!("{save}## 3."), 1);
    let mut environment = own_state(&root).to_vec();
    environment.push(("LITELLM_MASTER_KEY", "sk-book".to_owned()));
    page.succeeds(&borrowed(&environment)).await;
}

#[tokio::test]
async fn make_demo_shows_record_and_headers() {
    let root = format!("{}/..", env!("CARGO_MANIFEST_DIR"));
    let demo = async |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        // No upstream of the developer's own.
        command.env_remove("LITELLM_BASE_URL").env_remove("LITELLM_MASTER_KEY");
        for name in OF_PACKAGE {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(&root).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(DEMO_TIMEOUT, command.output()).await.expect("the demo ends").unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{stdout}\n{stderr}");
        stdout
    };
    let stdout = demo("make", &["--no-print-directory", "demo"]).await;
    let shown = [
        "A sluice gate lets through what may pass",
        "\"run_id\":\"demo\"",
        "quota_exhausted, decided by account.total_tokens",
        "x-litellm-end-user-id: acct-demo",
    ];
    for shown in shown {
        assert!(stdout.contains(shown), "{stdout}");
    }
    assert!(!stdout.contains("sk-demo-key"), "the model's key is shortened: {stdout}");
    // What it ends with works.
    let next: Vec<_> = stdout.split_once("Try next:").unwrap().1.lines().skip(1).collect();
    let again = demo("bash", &["-c", next[0]]).await;
    assert!(again.contains("Dashboard, for one browser: http://127.0.0.1:"), "{again}");
    let help = demo("bash", &["-c", &format!("{} --help", next[1].split('#').next().unwrap())]).await;
    assert!(help.contains("Write a first configuration"), "{help}");
    // A run that goes on when the shell ends is cancelled: it leaves no container, and its mounts no directory.
    let containers = "docker ps --all --format '{{.Names}}' --filter name=sluice-demo";
    let wait = "until sluice runs ls --state running | grep -q demo-slow; do sleep 0.1; done";
    let typed = format!("sluice run --detach --model demo-slow --run-id demo-slow x; {wait}; {containers}");
    let shell = demo("bash", &["-c", &format!("echo \"{typed}\" | scripts/demo.sh --shell")]).await;
    assert!(shell.contains("sluice-demo"), "the control: it runs in the shell: {shell}");
    let left =
        demo("bash", &["-c", &format!("{containers}; ls --directory /tmp/sluice-demo* || true")]).await;
    assert_eq!(left, "", "{shell}");
}

#[tokio::test]
async fn a_demo_asks_an_upstream_of_ones_own() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let demo = async |variables: &[(&str, String)]| {
        let mut command = Command::new(harness::process::binary("sluice"));
        command.arg("demo").env_clear().env("PATH", Environment::capture().get("PATH").unwrap());
        command.envs(variables.iter().cloned()).stdin(Stdio::null()).kill_on_drop(true);
        timeout(DEMO_TIMEOUT, command.output()).await.expect("the demo ends").unwrap()
    };
    let base_url = ("LITELLM_BASE_URL", upstream.base_url());
    let half = demo(std::slice::from_ref(&base_url)).await;
    let complaint = String::from_utf8_lossy(&half.stderr);
    assert_eq!(half.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("only one of LITELLM_BASE_URL and LITELLM_MASTER_KEY is set"), "{complaint}");
    let key = ("LITELLM_MASTER_KEY", "sk-book".to_owned());
    let shown = demo(&[base_url, key, ("COGNI_MODEL", "fake-cost".to_owned())]).await;
    let [stdout, stderr] = [shown.stdout, shown.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(shown.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("Hello from the scripted upstream"), "{stdout}");
    assert!(!stdout.contains("sk-book") && !stderr.contains("sk-book"), "{stdout}\n{stderr}");
    let asked = upstream.ledger().all();
    let chat = asked.iter().find(|entry| entry.path == "/v1/chat/completions").unwrap();
    assert_eq!(chat.header("authorization"), ["Bearer sk-book"]);
}
