//! Tests `sluice chat`: a conversation in a pipe and on a terminal.

use std::fs::{self, File};

use harness::{World, process::binary, shell_agents::RECALLS, terminal::converse};
use tokio::process::Command;

use crate::sandbox::{run, shell_agent};

/// End of the banner, after which the editor waits for a line.
const BANNER: &str = "/help lists commands\r\n\u{1b}[?2004h";
/// End of the figures below an answer, after which the editor waits for a line.
const ANSWERED: &str = "s\u{1b}[0m\r\n\u{1b}[?2004h";
const AGENT: [&str; 5] = ["chat", "--agent", "test:sh", "--model", "fake"];

/// Returns the lines that a chat with these messages answers.
async fn answers_of(world: &World, messages: &str, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    answers_to(world, messages, &[&AGENT, arguments].concat()).await
}

/// The same, for the command with these arguments alone.
async fn answers_to(world: &World, messages: &str, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let file = world.path().join("messages");
    fs::write(&file, messages).unwrap();
    let chat = world.sluice().stdin(File::open(&file).unwrap());
    let outcome = chat.run(arguments).await;
    (outcome.code, outcome.stdout.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_chat_in_a_pipe_answers_each_line() {
    let world = World::with(&shell_agent(RECALLS, "")).await;
    let (code, lines) = answers_of(&world, "one\n\ntwo\n", &["--thread", "t1"]).await;
    assert_eq!(
        (code, lines),
        (Some(0), vec!["user:one".to_owned(), "user:one|assistant:user:one|user:two".to_owned()])
    );
    let (_, lines) = answers_of(&world, "three", &["--thread", "t1"]).await;
    assert!(lines[0].ends_with("|user:three") && lines[0].starts_with("user:one|"), "{lines:?}");
    let (_, lines) = answers_of(&world, "three", &[]).await;
    assert_eq!(lines, ["user:three"], "another thread");
    assert_eq!(answers_of(&world, "", &[]).await, (Some(0), vec![]));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_person_talks_and_goes_on_later() {
    let world = World::with(&shell_agent(RECALLS, "")).await;
    let (code, _) = answers_of(&world, "one", &["--thread", "t1"]).await;
    assert_eq!(code, Some(0));
    let mut command = Command::new(binary("sluice"));
    command.arg("--config").arg(world.config()).args(AGENT).args(["--thread", "t1"]);
    // Ctrl-D ends the conversation.
    let answers = [(BANNER, "two\r"), (ANSWERED, "\u{4}")];
    let shown = converse(command, &answers).await;
    assert!(shown.contains("> one"), "the turns before: {shown}");
    assert!(shown.contains("user:one|assistant:user:one|user:two"), "{shown}");
    let hint = "to go on: sluice chat --agent test:sh --thread t1 --account local --model fake";
    assert!(shown.lines().any(|line| line.trim() == hint), "{shown}");
    // The hint, as it is, goes on with the same conversation.
    let words: Vec<_> = hint.split(' ').skip_while(|word| *word != "chat").collect();
    let (code, lines) = answers_to(&world, "three", &words).await;
    assert_eq!(code, Some(0));
    assert!(lines[0].starts_with("user:one|") && lines[0].ends_with("|user:three"), "{lines:?}");
    let (_, lines) = answers_of(&world, "four", &["--thread", "t1", "--account", "acct-2"]).await;
    assert_eq!(lines, ["user:four"], "control: the account's own thread");
    world.assert_nothing_left().await;
}

/// Lines that a terminal marks as pasted are one message, and commands are none.
#[tokio::test]
async fn commands_and_pastes_cost_one_run() {
    let world = World::with(&shell_agent(RECALLS, "")).await;
    let mut command = Command::new(binary("sluice"));
    command.arg("--config").arg(world.config()).args(AGENT).args(["--thread", "t1"]);
    let answers = [
        (BANNER, "/help\r"),
        ("Ctrl-C cancels an answer.", "/model fkae\r"),
        ("does not offer model fkae (did you mean fake?)", "/model fake-echo\r"),
        ("agent test:sh, model fake-echo, thread t1", "/agent nope\r"),
        ("sluice: no agent sandbox:nope", "/helm\r"),
        ("sluice: there is no command /helm", "\u{1b}[200~one\rtwo\rthree\u{1b}[201~\r"),
        (ANSWERED, "/quit\r"),
    ];
    converse(command, &answers).await;
    let listed = world.sluice().run(&["runs", "ls", "--json"]).await.result();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
    let run = listed["runs"][0]["run_id"].as_str().unwrap();
    let shown = world.sluice().run(&["runs", "show", run, "--json"]).await.result();
    assert_eq!(shown["order"]["messages"][0]["content"], "one\ntwo\nthree");
    // Control: in a pipe, a line is a message whatever it says.
    let (code, lines) = answers_of(&world, "/help\n", &[]).await;
    assert_eq!((code, lines), (Some(0), vec!["user:/help".to_owned()]));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_failed_answer_ends_no_chat() {
    let world =
        World::with(&shell_agent("grep -q two /workspace/.cogni/messages.json && exit 3; echo fine", ""))
            .await;
    let (code, lines) = answers_of(&world, "one\ntwo\n", &["--thread", "t1"]).await;
    assert_eq!((code, lines), (Some(1), vec!["fine".to_owned()]), "the last answer decides");
    let (code, lines) = answers_of(&world, "three\n", &["--thread", "t1"]).await;
    assert_eq!((code, lines.len()), (Some(0), 1), "a turn without an answer is not history");
    let refused = run(&world).await;
    assert_eq!(refused.code, Some(0), "{refused:?}");
    world.assert_nothing_left().await;
}
