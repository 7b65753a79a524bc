//! Starts `sluice`; the library holds everything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner_cli::main()
}
