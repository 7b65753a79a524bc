//! Tests what the help of each command says of exit codes and signals.

use clap::Command;

use super::command_line;

/// Returns the long help of `command` and of the commands below it, with their names.
fn helps(mut command: Command) -> Vec<(String, String)> {
    // Rendering adds the command `help`, which has no help itself.
    let below: Vec<_> = command.get_subcommands().cloned().flat_map(helps).collect();
    let help = command.render_long_help().to_string();
    [(command.get_name().to_owned(), help)].into_iter().chain(below).collect()
}

#[test]
fn every_long_help_has_exit_codes() {
    let helps = helps(command_line());
    assert!(helps.len() > 40, "only {} commands were found", helps.len());
    for (name, help) in &helps {
        let listed = ["\nExit codes:\n  0 success\n", "`sluice --help` lists all exit codes"];
        assert_eq!(listed.iter().filter(|words| help.contains(**words)).count(), 1, "{name}: {help}");
    }
    let of = |name: &str| &helps.iter().find(|(command, _)| command == name).unwrap().1;
    for code in ["  1 ", "  2 ", "  69 ", "  70 ", "  75 ", "  124 ", ", 137 ", "  130 ", ", 141 "] {
        assert!(of("sluice").contains(code) && of("run").contains(code), "{code:?}: {}", of("run"));
    }
    assert!(of("run").contains("Examples:"), "the codes replace nothing: {}", of("run"));
}

#[test]
fn the_help_of_up_says_what_signals_do() {
    let help = helps(command_line()).into_iter().find(|(name, _)| name == "up").unwrap().1;
    for words in ["Signals on a terminal:", "Signals as a service:"] {
        let signals = help.split_once(words).unwrap().1.split("\n\n").next().unwrap();
        assert!(signals.contains("SIGHUP"), "{words} {signals}");
    }
}
