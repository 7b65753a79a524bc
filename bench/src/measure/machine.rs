//! Describes the machine and the versions of a run, without which its figures mean nothing.

use std::{fs, process::Command};

use serde::Serialize;

/// The machine, and the versions of everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Name of the machine; the run is kept under it.
    pub host: String,
    /// Model of the processor.
    pub processor: String,
    /// Number of processors.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel.
    pub kernel: String,
    /// Measured commit; `-dirty` if measured files had changes.
    pub commit: String,
    /// First line of each program's version output.
    pub versions: Vec<String>,
    /// Start of the run, in seconds since the epoch.
    pub began: u64,
    /// Day of the run, for people: `2026-01-31`.
    pub date: String,
}

impl Machine {
    /// Returns the description of this machine.
    #[must_use]
    pub fn here() -> Self {
        let host = output_of("hostname", &["-s"]);
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let measured =
            ["status", "--porcelain", "--", "Cargo.lock", "platform", "proxy", "bench/src", "bench/peers"];
        let dirty = if output_of("git", &measured).is_empty() { "" } else { "-dirty" };
        let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            host: host.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect(),
            processor: value(&cpuinfo, "model name").unwrap_or_default().to_owned(),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory_mib: value(&meminfo, "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
            kernel: output_of("uname", &["-sr"]),
            commit: output_of("git", &["rev-parse", "--short=12", "HEAD"]) + dirty,
            versions: versions(),
            began: began.as_secs(),
            date: output_of("date", &["-u", "+%F"]),
        }
    }
}

fn versions() -> Vec<String> {
    [("rustc", "-V"), ("nginx", "-v"), ("haproxy", "-v"), ("socat", "-V"), ("valgrind", "--version")]
        .into_iter()
        .map(|(program, argument)| {
            let text = output_of(program, &[argument]);
            let line =
                text.lines().find(|line| line.bytes().any(|byte| byte.is_ascii_digit())).unwrap_or("missing");
            if line.contains(program) { line.to_owned() } else { format!("{program}: {line}") }
        })
        .collect()
}

/// Returns the output of a program, from stdout or stderr; empty if the program is missing.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else { return String::new() };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).trim().to_owned()
}

fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}
