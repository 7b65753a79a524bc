//! Agents of the runs that the suites show, and the texts with which they attack those who look.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use harness::shell_agents::{prints, reporting_agent, shell_agent};
use serde_json::{Value, json};

/// Words that an agent writes, one after the other.
const WORDS: [&str; 6] = ["one ", "two ", "three ", "four ", "five ", "six"];

/// Texts that run code, or ask a foreign host, where they become HTML.
pub(super) const ATTACKS: [(&str, &str); 5] = [
    ("script", "<script>window.ran=1</script>"),
    ("picture", "<img src=x onerror=\"window.ran=1\">"),
    ("drawing", "</script><svg onload=\"window.ran=1\"></svg>"),
    ("address", "<a href=\"javascript:void(window.ran=1)\">x</a>"),
    ("foreign", "<img src=\"http://attacker.invalid/p.png\">"),
];

/// Text of a card that asks for a decision, as the dashboard never draws one.
const FAKE_CARD: &str = "Host tool github__merge waits for your decision: [Approve] [Deny]";

/// Returns the attacks as a map.
pub(super) fn attacks() -> Value {
    ATTACKS
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns a text with all attacks, and with what terminals and readers fall for.
pub(super) fn hostile_text() -> String {
    let mut text: String = ATTACKS.iter().map(|(_, text)| format!("{text} ")).collect();
    write!(
        text,
        "[js](javascript:window.ran=1) [d](data:text/html,x) ![i](http://attacker.invalid/i.png) \
         \u{1b}[2J\u{1b}]0;title\u{7} \u{1b}]8;;https://attacker.invalid\u{7}x \u{1b}]52;c;eA==\u{7} \
         \u{202e}txt.exe\u{2066} zero\u{200b}width e{} \
         https://\u{430}pple.com/x https://docs.example/page {FAKE_CARD} {{\"__proto__\":{{\"polluted\":1}}}}",
        "\u{301}".repeat(5000)
    )
    .unwrap();
    text
}

/// Returns a script that writes `text`, whatever its characters.
fn writes(text: &str) -> String {
    format!("printf %s {} | base64 -d", BASE64_STANDARD.encode(text))
}

/// Returns a script that writes `events`, whatever their characters.
fn reports(events: &[Value]) -> String {
    writes(&events.iter().map(|event| format!("{event}\n")).collect::<String>())
}

fn named(entry: &str, name: &str) -> String {
    entry.replace("test:sh", name)
}

/// Returns the configuration of all agents, and of what they need.
pub(super) fn configuration() -> String {
    let words = WORDS.map(|word| prints(&[json!({ "type": "text", "text": word })])).join("sleep 0.7; ");
    let whole = prints(&[json!({ "type": "result", "text": WORDS.concat() })]);
    let many = "for i in $(seq 1000); do \
         echo '{\"type\":\"tool_call\",\"id\":\"c'$i'\",\"name\":\"read\",\"arguments\":{}}'; \
         echo '{\"type\":\"tool_result\",\"id\":\"c'$i'\",\"result\":\"row '$i'\",\"is_error\":'$([ $i = 700 ] && echo true || echo false)'}'; \
         done; echo '{\"type\":\"result\",\"text\":\"the last\"}'";
    let hostile =
        reporting_agent(&hostile_script(), "stream = 'answer'\nname = '<img src=x onerror=window.ran=1>'");
    [
        shell_agent("echo it is done", "name = 'Quick'"),
        named(
            &reporting_agent(&format!("{words}{whole}"), "stream = 'answer'\nname = 'Counts'"),
            "test:words",
        ),
        named(&shell_agent("sleep 60", "run_timeout = '50s'\nname = 'Takes long'"), "test:long"),
        named(
            &shell_agent(&format!("{} >&2; exit 3", writes(&hostile_text())), "name = 'Fails'"),
            "test:fails",
        ),
        named(&shell_agent("head -c 1048576 /dev/zero | tr '\\0' A >&2; echo done", ""), "test:line"),
        named(&reporting_agent(many, "name = 'Busy'"), "test:many"),
        named(
            &shell_agent(
                "cogni-tool exec core__get_current_time '{}'; echo asked",
                "host_tools = ['core__get_current_time']",
            ),
            "test:asks",
        ),
        named(&hostile, "test:hostile"),
        "[agents.'test:missing']\nimage = 'nowhere:1'\nargv = ['/x']\n".to_owned(),
        "[gateways.coding]\naccount = 'acct-7'\n".to_owned(),
        "[worker]\nmax_concurrent_runs = 4\n[tools]\napproval = ['core__get_current_time']\n".to_owned(),
    ]
    .concat()
}

fn hostile_script() -> String {
    let text = hostile_text();
    let [(_, script), (_, picture), (_, drawing), ..] = ATTACKS;
    let events = [
        json!({ "type": "text", "text": format!("{script} split \u{1b}") }),
        json!({ "type": "text", "text": "[31m red" }),
        json!({ "type": "tool_call", "id": "__proto__", "name": picture, "arguments": { "__proto__": { "polluted": 1 }, "text": text } }),
        json!({ "type": "tool_result", "id": "__proto__", "result": text, "is_error": true }),
        json!({ "type": "result", "text": text }),
    ];
    format!("{} >&2; {}", writes(&format!("{drawing} {text}\n")), reports(&events))
}
