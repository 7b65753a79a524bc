//! Tests that a token is used, and is nowhere but in its file.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::mpsc, thread};

use platform_core::name::git_sync;
use rustix::process::Signal;

use crate::{
    git_server::{Behaviour, GitServer, USER, processes_with},
    process::GitSync,
    remote::Remote,
};

const TOKEN: &str = "sync-token-canary-4711";

fn write_token(path: &Path, token: &str) {
    let new = path.with_extension("new");
    fs::write(&new, token).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o400)).unwrap();
    fs::rename(new, path).unwrap();
}

/// Returns the files below `dir` that hold the token.
fn files_with(dir: &Path, token: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => files_with(&path, token),
        Ok(found) if found.is_file() => {
            let holds = fs::read(&path).unwrap().windows(token.len()).any(|part| part == token.as_bytes());
            holds.then(|| path.display().to_string()).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

/// Serves the repositories in `root` from its own thread, which ends with the test.
fn serve(root: &Path) -> GitServer {
    let (send, receive) = mpsc::channel();
    let root = root.to_owned();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            send.send(GitServer::start(root, TOKEN).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receive.recv().unwrap()
}

#[test]
fn a_renewed_token_is_used_and_shown_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::new(dir.path());
    let server = serve(dir.path());
    let token_file = dir.path().join("token");
    write_token(&token_file, "an-expired-token");
    let file = token_file.display().to_string();
    let variables = [(git_sync::PASSWORD_FILE, file.as_str()), (git_sync::USERNAME, USER)];
    let mirror = GitSync::start(dir.path(), &format!("{}/upstream.git", server.origin), &variables);
    let refused = mirror.report();
    assert!(refused.error.as_ref().is_some_and(|error| !error.contains("token")), "{refused:?}");

    write_token(&token_file, &format!("{TOKEN}\n"));
    mirror.signal(Signal::HUP);
    assert_eq!(mirror.synced().commit, Some(remote.tip()));
    assert!(server.credentials() > 0, "control: the server asked for it");
    assert_eq!(server.leaks(), Vec::<String>::new());
    for place in [&mirror.root, &mirror.state, &dir.path().join("askpass")] {
        assert_eq!(files_with(place, TOKEN), Vec::<String>::new());
    }
    assert_eq!(files_with(dir.path(), TOKEN), [file], "control: it is in its file");
    assert_eq!(processes_with(TOKEN), Vec::<String>::new());

    server.behave(Behaviour::Redirects("http://127.0.0.1:1".to_owned()));
    mirror.signal(Signal::HUP);
    assert!(mirror.report().error.is_some(), "a credential goes to its own host alone");
    assert!(server.requests() > 2);
}
