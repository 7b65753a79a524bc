//! Tests the waits before the agent begins: for a healthy proxy, and without a command for a start file.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use harness::{
    Outcome,
    bridge::free_port,
    eventually,
    init::{outcome, sandbox_init, signal},
};
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Command;

use super::Peer;
use harness::init::watches;

/// Returns an agent that says when it begins.
fn with_socket(socket: &Path) -> Command {
    let mut init = sandbox_init(&["echo", "up"]);
    init.env("LLM_PROXY_SOCKET", socket);
    init
}

fn waiting_for(file: &Path) -> Command {
    let mut init = sandbox_init(&[]);
    init.env("SANDBOX_START_FILE", file);
    init
}

/// Writes a file as the host does: complete when it appears.
fn put(file: &Path, content: &str) {
    let aside = file.with_file_name("aside");
    fs::write(&aside, content).unwrap();
    fs::rename(aside, file).unwrap();
}

/// Returns a start file with a shell agent.
fn start(script: &str) -> String {
    json!({ "argv": ["sh", "-c", script], "environment": {}, "working_directory": "/" }).to_string()
}

#[tokio::test]
async fn an_agent_begins_once_its_proxy_is_healthy() {
    let peer = Peer::bind();
    let mut init = with_socket(&peer.socket()).spawn().unwrap();
    for status in ["HTTP/1.1 503 Service Unavailable", "HTTP/1.1 404 Not Found", "SMTP 200"] {
        peer.is(status).await;
    }
    assert!(init.try_wait().unwrap().is_none(), "it does not begin without");
    peer.is_healthy().await;
    let ended = outcome(init).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "up\n"), "{ended:?}");
}

/// Runs it with these variables.
async fn run(variables: &[(&str, &str)]) -> Outcome {
    outcome(sandbox_init(&["echo", "up"]).envs(variables.iter().copied()).spawn().unwrap()).await
}

#[tokio::test]
async fn without_a_proxy_it_says_what_is_missing() {
    let ended = run(&[("OPENAI_API_BASE", "http://localhost:8080")]).await;
    let told = "sandbox-init: OPENAI_API_BASE is set but there is no socket at /nowhere: is the run's socket directory \
                mounted?\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), told));

    let peer = Peer::bind();
    let socket = peer.socket().display().to_string();
    drop(peer.listener);
    let ended = run(&[("LLM_PROXY_SOCKET", &socket)]).await;
    let told = format!(
        "sandbox-init: no healthy proxy behind {socket} after 5 s: /health said 'nothing: Connection refused (os error \
         111)'\n"
    );
    assert_eq!((ended.code, ended.stderr), (Some(1), told));

    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = run(&[("LLM_PROXY_SOCKET", &socket), ("LLM_PROXY_PORT", &port)]).await;
    let told = format!(
        "sandbox-init: the bridge could not listen on 127.0.0.1:{port} (is the port taken?): Address already in use (os \
         error 98)\n"
    );
    assert_eq!((ended.code, ended.stderr), (Some(1), told));

    // Control: without a socket and without the API's address there is nothing to miss.
    let ended = run(&[]).await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "up\n", ""));
}

#[tokio::test]
async fn a_stop_before_there_is_an_agent_is_immediate() {
    let peer = Peer::bind();
    let dir = tempfile::tempdir().unwrap();
    for (kind, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let init = waiting_for(&dir.path().join("start.json")).spawn().unwrap();
        watches(init.id().unwrap()).await;
        for harmless in [Signal::WINCH, Signal::USR1, Signal::USR2, kind] {
            signal(&init, harmless);
        }
        assert_eq!(outcome(init).await.code, Some(code));

        let init = with_socket(&peer.socket()).spawn().unwrap();
        let _unanswered = peer.accept().await;
        signal(&init, kind);
        let ended = outcome(init).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""));
    }
}

#[tokio::test]
async fn a_start_file_sets_program_env_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (file, work) = (dir.path().join("start.json"), dir.path().join("a b"));
    fs::create_dir(&work).unwrap();
    let content = json!({
        "argv": ["sh", "-c", "pwd; echo \"$0 $1\"; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort", "zero", "$one"],
        "environment": { "RUN_ID": "r1", "PATH": "/usr/bin:/bin" },
        "working_directory": work,
    });
    put(&file, &content.to_string()); // there before it looks
    let mut init = waiting_for(&file);
    init.env("KEPT", "yes").env_remove("LLM_PROXY_PORT").env_remove("LLM_PROXY_SOCKET");
    let ended = outcome(init.spawn().unwrap()).await;
    let expected = format!("{}\nzero $one\nKEPT=yes\nPATH=/usr/bin:/bin\nRUN_ID=r1\n", work.display());
    assert_eq!((ended.code, ended.stdout, ended.stderr), (Some(0), expected, String::new()));
}

#[tokio::test]
async fn only_a_renamed_start_file_counts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("start.json");
    let init = waiting_for(&file).spawn().unwrap();
    watches(init.id().unwrap()).await;
    let whole = start("echo whole");
    // Other files come and go beside it, and a writer writes the file in place, in pieces.
    put(&dir.path().join("llm.sock"), "another");
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    put(&dir.path().join("start.json.part"), &start("echo part"));
    fs::write(&file, start("echo in place")).unwrap();
    put(&file, &whole);
    let ended = outcome(init).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "whole\n"), "{ended:?}");
}

#[tokio::test]
async fn a_bad_start_file_is_named_with_its_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("start.json");
    let whole = start("true");
    let large = format!("{whole}{}", " ".repeat(1 << 20));
    for (content, code, mistake) in [
        (&whole[..whole.len() / 2], 65, "is invalid: the JSON text breaks off"),
        ("", 65, "is invalid: the JSON text breaks off"),
        (r#"{"argv":[],"working_directory":"/"}"#, 65, "is invalid: argv names no program"),
        (r#"{"argv":["true"],"working_directory":"/","cwd":1}"#, 65, "is invalid: unknown field `cwd`"),
        (&large, 65, "has more than 1048576 bytes"),
        (r#"{"argv":["true"],"working_directory":"/no/such"}"#, 126, "cannot work in /no/such: No such file"),
        (r#"{"argv":["no-such"],"working_directory":"/"}"#, 127, "cannot execute no-such: No such file"),
    ] {
        let init = waiting_for(&file).spawn().unwrap();
        watches(init.id().unwrap()).await;
        put(&file, content);
        let ended = outcome(init).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
        assert!(ended.stderr.contains(mistake) && ended.stderr.lines().count() == 1, "{mistake}: {ended:?}");
        fs::remove_file(&file).unwrap();
    }
    let ended = outcome(waiting_for(Path::new("/no/such/start.json")).spawn().unwrap()).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot watch /no/such for the start file"), "{ended:?}");
}

/// The message says so.
#[tokio::test]
async fn an_unreadable_directory_cannot_be_watched() {
    let dir = tempfile::tempdir().unwrap();
    for (mode, told) in [(0o711, "(its directory has to be readable): Permission denied"), (0o755, "")] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        put(&dir.path().join("start.json"), &start("true"));
        let mut init = waiting_for(&dir.path().join("start.json"));
        let ended = outcome(init.uid(1001).gid(1001).spawn().unwrap()).await;
        assert_eq!(ended.code, Some(i32::from(mode == 0o711)), "{ended:?}");
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
}

#[tokio::test]
async fn the_socket_may_come_after_the_start_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("start.json");
    let socket = dir.path().join("llm.sock");
    let port = free_port();
    let mut init = waiting_for(&file);
    init.env("LLM_PROXY_SOCKET", &socket).env("LLM_PROXY_PORT", port.port().to_string());
    let init = init.spawn().unwrap();
    watches(init.id().unwrap()).await;
    let content = json!({
        "argv": ["echo", "up"], "environment": { "OPENAI_API_BASE": "http://localhost" }, "working_directory": "/",
    });
    put(&file, &content.to_string());
    let connect = || async { tokio::net::TcpStream::connect(port).await.map(drop) };
    eventually("it has read the file and bridges", connect, Result::is_ok).await.unwrap();
    let peer = Peer { listener: tokio::net::UnixListener::bind(&socket).unwrap(), dir };
    peer.is_healthy().await;
    let ended = outcome(init).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "up\n"), "{ended:?}");
}
