//! Tests that a user who may not do something is told who may.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::{Output, Stdio},
};

use harness::process::binary;
use tokio::process::Command;

/// User without any rights.
const NOBODY: u32 = 65534;

#[tokio::test]
async fn another_user_is_told_to_be_root() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    // A copy that each user reaches.
    let program = dir.path().join("sluice");
    fs::copy(binary("sluice"), &program).unwrap();
    let config = dir.path().join("sluice.toml");
    let state = dir.path().join("state");
    let text = format!(
        "[sandbox]\nstate_dir = {state:?}\n[store]\nurl = 'sqlite://{}/store/s.db'\n",
        state.display()
    );
    fs::write(&config, text).unwrap();
    let list = async |uid: u32| -> Output {
        let mut command = Command::new(&program);
        command.args(["runs", "ls"]).env_clear().env("SLUICE_CONFIG", &config).uid(uid).gid(uid);
        command.stdin(Stdio::null()).output().await.unwrap()
    };
    let refused = list(NOBODY).await;
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{complaint}");
    assert!(complaint.contains("Permission denied"), "{complaint}");
    assert!(complaint.ends_with("sluice: next: run it as root, `sudo sluice …`\n"), "{complaint}");
    let root = list(0).await;
    assert!(root.status.success(), "the control: {root:?}");
}
