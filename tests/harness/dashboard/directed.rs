//! Runs suites that ask for faults: a suite prints `{"ask": WORD}`, and continues once the fault has happened.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::{Cases, Dashboard};
use crate::up::Up;

impl Dashboard {
    /// Runs a suite like [`Dashboard::suite`]. `cause` has the faults happen that it asks for.
    ///
    /// # Panics
    /// If the suite fails, or has other cases.
    pub async fn directed(
        &mut self,
        name: &str,
        input: Value,
        cases: &[&str],
        mut cause: impl AsyncFnMut(&mut Self, &str),
    ) -> Cases {
        let mut program = self.program(name, input);
        let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = program.stdin.take().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            if let Some(fault) = line["ask"].as_str() {
                cause(self, fault).await;
                stdin.write_all(b"done\n").await.unwrap();
            } else {
                seen.push(line);
            }
        }
        assert!(program.wait().await.unwrap().success(), "{name}: {seen:#?}");
        Cases::checked(name, seen, cases)
    }

    /// Kills `sluice up`, and then its proxy: the next one would adopt it, and leave it at its end.
    ///
    /// # Panics
    /// If one does not end.
    pub async fn kill(&mut self) {
        self.there.up.proxy_pid = self.there.world.control.health().await.unwrap().pid;
        self.there.up.child.start_kill().unwrap();
        self.there.up.death().await;
        self.there.up.kill_proxy().await;
    }

    /// Starts `sluice up` again after a kill.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        let world = &self.there.world;
        self.there.up = Up::start(world.sluice().log_to(&world.path().join("up-again.log"))).await;
    }
}
