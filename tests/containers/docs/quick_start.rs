//! The README's quick start, executed as it is written, on a Debian that never had Sluicegate.
//!
//! One thing is replaced: building takes minutes, so the programs under test come as a package, and the image is there.
//! Agents run on this machine's Docker, so their directories have the same paths inside and outside.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use bench::upstream::ScriptedUpstream;
use harness::{bare_debian::IMAGE, canary::CANARY_KEY, terminal::converse};
use tokio::process::Command;

use crate::cli::packages::{package, programs};
use harness::book::{Page, own_state};

/// Most lines of the quick start.
const MAX_LINES: usize = 6;
/// Programs that `scripts/setup.sh` itself needs; they are essential on Debian.
const ESSENTIAL: [&str; 10] =
    ["bash", "cat", "dirname", "env", "flock", "mktemp", "rm", "sh", "tail", "timeout"];

/// A Debian with Rust can have neither. The engine is there here, so that nothing is installed before them.
#[tokio::test]
async fn set_up_installs_what_builds_the_programs() {
    let dir = tempfile::tempdir().unwrap();
    for program in ESSENTIAL {
        let path = ["/bin", "/usr/bin"].map(|dir| format!("{dir}/{program}"));
        let path = path.iter().find(|path| fs::exists(path).unwrap()).unwrap();
        symlink(path, dir.path().join(program)).unwrap();
    }
    // `apt-get` fails, so that nothing is installed.
    for (program, code) in [("dockerd", 0), ("docker", 0), ("tini", 0), ("apt-get", 1)] {
        let program = dir.path().join(program);
        fs::write(&program, format!("#!/bin/sh\nexit {code}\n")).unwrap();
        fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/setup.sh");
    let mut setup = Command::new(script);
    setup.arg("images").env_clear().env("PATH", dir.path()).env("HOME", dir.path());
    let output = setup.output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("(make build-essential debootstrap)"), "{said}");
}

#[tokio::test]
async fn the_quick_start_leads_to_an_answer() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let page = Page::read("README.md");
    let lines: usize = page.blocks("sh").iter().map(|block| block.lines().count()).sum();
    assert!(lines <= MAX_LINES, "{lines} lines");
    let root = page.root();
    let environment = [("REVISION", "1"), ("COMPRESSION", "none")];
    let deb = package(&["deb", &programs(), &root], &environment).await;
    let page = page.with("scripts/setup.sh images && make install", &format!("dpkg --install {deb}"));
    let script = format!(
        "set -euo pipefail\n! command -v sluice\n{}kill $(jobs -p)\nwait\nstat -c '%a %U' /etc/sluicegate/*\n",
        page.blocks("sh").concat()
    );
    fs::write(format!("{root}/quick-start.sh"), script).unwrap();
    let own_state = own_state(&root);
    let variables = own_state.iter().filter(|(name, _)| *name != "SLUICE_CONFIG");
    let variables = variables.flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")]);
    let mut docker = Command::new("docker");
    docker
        .args([
            "run",
            "--rm",
            "--interactive",
            "--tty",
            "--network",
            "host",
            "--user",
            "0",
            "--entrypoint",
            "bash",
        ])
        .args([
            "--volume",
            "/var/run/docker.sock:/var/run/docker.sock",
            "--volume",
            &format!("{root}:{root}"),
        ])
        .args(variables)
        .args([IMAGE, &format!("{root}/quick-start.sh")]);
    let [url, key] = [upstream.base_url(), CANARY_KEY.to_owned()].map(|answer| answer + "\n");
    let answers = [("Upstream: ", &*url), ("Key of the upstream", &*key), ("Default model", "fake\n")];
    let shown = converse(docker, &answers).await;
    for words in ["wrote     /etc/sluicegate/sluice.toml", "Hello from the scripted upstream", "600 root"] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    assert!(!shown.contains(CANARY_KEY), "the key is shown: {shown}");
    let asked = upstream.ledger().all();
    let call = asked.iter().rfind(|entry| entry.path == "/v1/chat/completions").unwrap();
    assert_eq!(call.header("authorization"), [format!("Bearer {CANARY_KEY}")], "it reached the upstream");
}
