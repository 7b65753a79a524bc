//! commands runs git as a careless host does, and plants what it would run.

use std::fs;

use crate::{
    agent::Agent,
    canary::{Canary, write_program},
    world::World,
};

pub(super) fn hook(agent: &Agent, canary: &Canary, name: &str) {
    let hook = agent.plant(&format!("hooks/{name}"), "");
    write_program(&hook, &format!("#!/bin/sh\n{}\n", canary.shown()));
}

pub(super) fn push(agent: &Agent, world: &World) {
    let to = world.copy_of_remote("naive");
    agent.naive(&["push", "--quiet", &to.display().to_string(), "HEAD:refs/heads/naive"]);
}

pub(super) fn status(agent: &Agent, _world: &World) {
    agent.naive(&["status"]);
}

pub(super) fn add(agent: &Agent, _world: &World) {
    fs::write(agent.dir.join("README.md"), "changed\n").expect("a file is written");
    agent.naive(&["add", "-A"]);
}

pub(super) fn diff(agent: &Agent, _world: &World) {
    agent.naive(&["diff", "HEAD~1", "HEAD"]);
}

pub(super) fn attributes(agent: &Agent, line: &str) {
    agent.plant("info/attributes", line);
}

pub(super) fn fetch_origin(agent: &Agent, _world: &World) {
    agent.naive(&["fetch", "origin"]);
}

pub(super) fn ask_credential(agent: &Agent, _world: &World) {
    let mut git = agent.git();
    git.env("GIT_TERMINAL_PROMPT", "0").args(["credential", "fill"]);
    // Helpers and prompts may fail; it matters only whether they ran.
    let script = "printf 'protocol=https\\nhost=example.org\\n\\n' | \"$@\"";
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", script, "sh", "git", "-C"]).arg(&agent.dir).args(["credential", "fill"]);
    shell.env_clear().envs(git.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().expect("a shell starts");
}

/// Runs a command at its own terminal: git starts a pager only there.
pub(super) fn in_terminal(agent: &Agent, command: &str) {
    let git = agent.git();
    let mut script = std::process::Command::new("script");
    script.args(["-qec", command, "/dev/null"]).current_dir(&agent.dir).env_clear();
    script.envs(git.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    script.stdin(std::process::Stdio::null()).output().expect("a terminal is made");
}
