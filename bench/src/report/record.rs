//! Keeps a run in a directory: `bench/runs/<date>-<host>/`.
//!
//! | file | content |
//! |---|---|
//! | `summary.json` | one row per peer and workload |
//! | `raw.json` | every round |
//! | `machine.json` | machine, date, commit and versions |
//! | `tables.md`, `plot.svg`, `plot.png` | for people; drawn by `plot.gnuplot` from `plot.tsv` |
//! | `configs/` | the configuration of each peer |

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Raw, Row, plot, tables};
use crate::{
    measure::machine::Machine,
    peer::in_memory,
    session::{Plan, Samples},
};

/// A finished run.
#[derive(Debug)]
pub struct Record {
    /// Machine that ran the benchmark.
    pub machine: Machine,
    /// Rows, one per peer and workload.
    pub rows: Vec<Row>,
    /// Tables in Markdown.
    pub tables: String,
    raw: Vec<Raw>,
}

impl Record {
    /// Returns the record of `samples`, which were measured on `machine` according to `plan`.
    #[must_use]
    pub fn of(machine: Machine, plan: &Plan, mut samples: Vec<Samples>) -> Self {
        let rows: Vec<Row> = samples.iter_mut().map(Samples::row).collect();
        let raw = samples.iter_mut().flat_map(Samples::raw).collect();
        let tables = tables(&rows, &plan.workloads, &plan.peers);
        Self { machine, rows, tables, raw }
    }

    /// Returns the record's directory below `runs`.
    #[must_use]
    pub fn dir(&self, runs: &Path) -> PathBuf {
        runs.join(format!("{}-{}", self.machine.date, self.machine.host))
    }

    /// Writes the record into `dir`, in place of an older one; `peers` is the directory with the peers' configurations.
    ///
    /// # Errors
    /// If files cannot be written or the plot cannot be drawn.
    pub fn write(&self, dir: &Path, peers: &Path) -> io::Result<()> {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir.join("configs"))?;
        write_json(&dir.join("summary.json"), &self.rows)?;
        write_json(&dir.join("raw.json"), &self.raw)?;
        write_json(&dir.join("machine.json"), &self.machine)?;
        fs::write(dir.join("tables.md"), &self.tables)?;
        self.keep_configurations(&dir.join("configs"), peers)?;
        plot::draw(&self.rows, dir)
    }

    /// Keeps the configurations below `peers`: of peers, and of environments with peers.
    fn keep_configurations(&self, to: &Path, peers: &Path) -> io::Result<()> {
        for peer in directories(peers)? {
            keep_configuration(&peer, &to.join(name(&peer)))?;
            for nested in directories(&peer)? {
                keep_configuration(&nested, &to.join(format!("{}-{}", name(&peer), name(&nested))))?;
            }
        }
        Ok(())
    }
}

fn keep_configuration(peer: &Path, to: &Path) -> io::Result<()> {
    let Ok(text) = fs::read_to_string(peer.join("peer.conf")) else { return Ok(()) };
    // Paths of a removed directory mean nothing, so a placeholder replaces them.
    let text = text.replace(&in_memory(peer).display().to_string(), "@RUN@");
    let text = text.replace(&peer.display().to_string(), "@DIR@");
    fs::write(to.with_extension("conf"), text)
}

fn directories(of: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(of)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

fn name(of: &Path) -> String {
    of.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes one element per line, so that two runs can be compared line by line.
fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = match serde_json::to_value(value)? {
        serde_json::Value::Array(elements) => {
            let lines: Vec<String> = elements.iter().map(ToString::to_string).collect();
            format!("[\n{}\n]\n", lines.join(",\n"))
        }
        other => serde_json::to_string_pretty(&other)? + "\n",
    };
    fs::write(path, text)
}
