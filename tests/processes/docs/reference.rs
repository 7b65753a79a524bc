//! Generated reference pages of the book are what the programs say of themselves.
//!
//! After a change, delete the page: its test writes it anew, and fails once.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use harness::{Agent, Up, World, bridge::free_port};
use platform_core::{event::RunErrorCode, refusal::Refusal};
use platform_runtime::settings::Settings;
use serde_json::Value;
use tokio::process::Command;

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src");

/// Compares the reference page `name` with `text`, and writes it if it is missing.
pub(super) fn published(name: &str, text: &str) {
    let path = PathBuf::from(BOOK).join("reference").join(name);
    let written = fs::read_to_string(&path).unwrap_or_default();
    if written.is_empty() {
        fs::write(&path, text).unwrap();
    }
    assert!(written == text, "{name} is out of date: delete it and run this test again");
}

/// Returns `text` as a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Appends the help of `command`, and of the commands below it.
async fn help(page: &mut String, command: &[&str]) {
    let mut program = Command::new(harness::process::binary(command[0]));
    let output = program.args(&command[1..]).arg("--help").env_clear().output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    writeln!(page, "\n## {}\n\n```text\n{}\n```", command.join(" "), text.trim_end()).unwrap();
    let listed = text.split_once("\nCommands:\n").map_or("", |(_, after)| after);
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // The description of a command may go on in the next line, indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    for name in names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help") {
        Box::pin(help(page, &[command, &[name]].concat())).await;
    }
}

#[tokio::test]
async fn the_command_line_page_is_the_programs_help() {
    let mut page = "# Command line\n\nFor users of the programs: the help of every command. [Exit codes](exit-codes.md) has \
        the codes with which they end.\n"
        .to_owned();
    help(&mut page, &["sluice"]).await;
    help(&mut page, &["sluice-proxy"]).await;
    published("cli.md", &page);
}

/// Returns which values a setting takes, in words.
fn values(setting: &Value) -> String {
    if let Some(words) = setting["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match (setting["type"].as_str(), setting["minimum"].as_u64(), setting["maximum"].as_u64()) {
        (Some("integer"), Some(least), Some(most)) => format!("whole number, {least} to {most}"),
        (Some("integer"), ..) => "whole number".to_owned(),
        (Some("boolean"), ..) => "true or false".to_owned(),
        (Some("array"), ..) => "list".to_owned(),
        (Some("object"), ..) => "table".to_owned(),
        _ => "text".to_owned(),
    }
}

#[test]
fn the_configuration_page_has_every_setting() {
    let mut page = "# Configuration\n\nFor operators: every section and key of the one configuration file, with its default. \
        `sluice config check` reports all mistakes at once. `SLUICE_<SECTION>_<KEY>` in the environment and `--set \
        section.key=value` override keys of sections with one table. The file \
        `platform/config/sluice.example.toml` shows all of them in their form.\n"
        .to_owned();
    let schema = Settings::json_schema();
    for (section, table) in schema["properties"].as_object().unwrap() {
        let each = &table["additionalProperties"];
        let (name, settings) =
            if each.is_object() { (format!("{section}.NAME"), each) } else { (section.clone(), table) };
        let doc = table["description"].as_str().unwrap();
        writeln!(page, "\n## `[{name}]`\n\n{doc}\n\n| key | values | default | meaning |\n|---|---|---|---|")
            .unwrap();
        for (key, setting) in settings["properties"].as_object().unwrap() {
            let default = setting.get("default").map_or_else(String::new, |default| format!("`{default}`"));
            let meaning = setting["description"].as_str().unwrap();
            writeln!(
                page,
                "| `{key}` | {} | {} | {} |",
                cell(&values(setting)),
                cell(&default),
                cell(meaning)
            )
            .unwrap();
        }
    }
    published("configuration.md", &page);
}

/// Returns the headings of the troubleshooting page that are about codes, with the anchors they have.
fn headings() -> BTreeMap<String, String> {
    let page = fs::read_to_string(format!("{BOOK}/how-to/troubleshoot.md")).unwrap();
    let mut anchors = BTreeMap::new();
    for heading in page.lines().filter_map(|line| line.strip_prefix("### `")) {
        let plain = heading.replace(['`', ','], "");
        let anchor = plain.replace(' ', "-");
        anchors.extend(plain.split(' ').map(|code| (code.to_owned(), anchor.clone())));
    }
    anchors
}

#[test]
fn the_errors_page_has_every_code() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../proxy/tests/golden/refusals.jsonl");
    let golden = fs::read_to_string(golden).unwrap();
    let rows: Vec<Value> = golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let headings = headings();
    let fix = |code: &str| match headings.get(code) {
        Some(anchor) => format!("[cause and fix](../how-to/troubleshoot.md#{anchor})"),
        None => panic!("troubleshoot.md has no heading for {code}"),
    };
    let mut page = "# Errors and refusals\n\nFor programs that act on codes: why a run failed, and why a call was refused.\n\n\
        ## Codes of failed runs\n\n`sluice run --json`, `sluice runs show --json` and the event `error` have one of them. \
        [Exit codes](exit-codes.md#from-the-code-of-a-run) lists the exit code of each.\n\n| code | |\n|---|---|\n"
        .to_owned();
    for code in RunErrorCode::ALL.map(RunErrorCode::code) {
        writeln!(page, "| `{code}` | {} |", fix(code)).unwrap();
    }
    page += "\n## Refusals of calls\n\nStatus and message are those of a listener that serves gateways, as an OpenAI error: \
        gateways lock a provider for every account on 401, 402, 403 and 429. A run's own socket and a listener for clients \
        answer errors of tokens with 401 and a message of their own, and use 408 and 429. `final` means that the same \
        request fails again (`x-should-retry: false`).\n\n| code | status | retry | message | |\n|---|---|---|---|---|\n";
    for code in Refusal::ALL.map(Refusal::code) {
        let is_row = |row: &&Value| row["code"] == code && row["api"] == "openai-completions";
        let row = rows.iter().find(is_row).unwrap_or_else(|| panic!("no golden answer of {code}"));
        let body: Value = serde_json::from_str(row["body"].as_str().unwrap()).unwrap();
        let retry = if row["final"] == true { "final" } else { "may pass later" };
        let message = cell(body["error"]["message"].as_str().unwrap());
        writeln!(page, "| `{code}` | {} | {retry} | {message} | {} |", row["status"], fix(code)).unwrap();
    }
    published("errors.md", &page);
}

/// Returns the families of an exposition: name, kind and help.
fn families(text: &str) -> String {
    let kinds: BTreeMap<_, _> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let mut rows: Vec<_> =
        helps.map(|(name, help)| format!("| `{name}` | {} | {} |\n", kinds[name], cell(help))).collect();
    rows.sort();
    format!("| metric | kind | meaning |\n|---|---|---|\n{}", rows.concat())
}

#[tokio::test]
async fn the_metrics_page_has_every_family() {
    let address = free_port();
    let mut world = World::with(&format!("[api]\nlisten = '{address}'\n")).await;
    let proxy = world.control.send(http::Method::GET, "/v1/metrics", String::new()).await.text();
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
    let control = Agent::over_tcp(address).get("/metrics").await.text();
    let page = format!(
        "# Metrics\n\nFor operators who scrape: every metric, its kind and its meaning. [Scrape metrics with \
         Prometheus](../how-to/prometheus.md) says where they are served. No run and no account is ever a label.\n\n\
         ## The data plane\n\nServed on `proxy.metrics_listen`.\n\n{}\n## The control plane\n\nServed on `api.listen`.\n\n{}",
        families(&proxy),
        families(&control)
    );
    drop(up);
    published("metrics.md", &page);
}
