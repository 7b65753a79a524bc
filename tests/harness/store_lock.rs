//! Holds the write lock of a world's SQLite store, so that no other process can write.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::world::World;

/// Script that holds the lock until its standard input is closed.
const SCRIPT: &str = "import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
store.execute('ROLLBACK')";

/// The held lock. Dropping it releases the lock.
#[derive(Debug)]
pub struct StoreLock(Child);

impl StoreLock {
    /// Takes the lock of the world's store.
    ///
    /// # Panics
    /// If Python cannot take it.
    pub async fn take(world: &World) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", SCRIPT]).arg(world.path().join("store/sluice.db"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("held"));
        Self(child)
    }

    /// Releases the lock.
    ///
    /// # Panics
    /// If the holder did not end in order.
    pub async fn release(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().await.unwrap().success());
    }
}
