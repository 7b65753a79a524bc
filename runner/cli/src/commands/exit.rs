//! Describes the exit codes in the help of commands.

use clap::Command;
pub(super) use platform_core::code::Exit;

/// Exit codes of every command, for its help.
const ALL_COMMANDS: &str = "\
Exit codes:
  0 success
  1 the agent or a check failed, or what was named does not exist
  2 wrong usage or configuration
  69 proxy, Docker or store unavailable
  70 Sluicegate, Docker or an image failed
  75 try again later: the queue is full, or something is in use
  130 cancelled, 141 the reader of the output closed the pipe";

/// Exit codes of commands that end as a run ended.
const AS_A_RUN_ENDED: &str = "\n  124 time limit of the run, 137 memory limit of the run";

/// Returns `command` with exit codes at the end of its help, and of those of its subcommands. A help with its own
/// codes refers to the others. In `after_long_help` they would change the layout of every help without a long form.
pub(super) fn with_exit_codes(command: Command) -> Command {
    let command = command.mut_subcommands(with_exit_codes);
    let own = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    let codes = match command.get_name() {
        _ if own.contains("xit code") => "`sluice --help` lists all exit codes.".to_owned(),
        "sluice" | "run" | "wait" => format!("{ALL_COMMANDS}{AS_A_RUN_ENDED}"),
        _ => ALL_COMMANDS.to_owned(),
    };
    command.after_help(own + &codes)
}
