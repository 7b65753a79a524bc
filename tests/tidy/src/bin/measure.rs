//! measure prints the repository's measurements, lists a rule's offenders, or lowers the figures that have fallen.

use std::{env, error::Error, io, iter, process::ExitCode};

use tidy::{
    figures::{self, FIGURES, Figure},
    report,
    sources::Repository,
};

const USAGE: &str = "usage: measure [--json | --list FIGURE | --lower]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(text) => print(io::stdout(), &text, ExitCode::SUCCESS),
        Err(error) => {
            let causes = iter::successors(error.source(), |cause| (*cause).source());
            let text: Vec<String> =
                iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
            print(io::stderr(), &text.join(": "), ExitCode::FAILURE)
        }
    }
}

/// Writes a text; a reader that has gone, such as `head`, is not a failure.
fn print(mut to: impl io::Write, text: &str, code: ExitCode) -> ExitCode {
    let _gone = writeln!(to, "{}", text.trim_end());
    code
}

fn run(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let repository = Repository::open()?;
    match arguments {
        [] => Ok(report::table(&report::measure(&repository)?)),
        ["--json"] => Ok(format!("{:#}", report::json(&report::measure(&repository)?))),
        ["--list", key] => list(&repository, key),
        ["--lower"] => Ok(figures::lower(&repository)?.join("\n")),
        _ => Err(format!("{USAGE}\n{}", rules()).into()),
    }
}

fn list(repository: &Repository, key: &str) -> Result<String, Box<dyn Error>> {
    let offenders = Figure::named(key)?.offenders(repository)?;
    Ok(offenders.iter().map(|offender| format!("{offender}\n")).collect())
}

fn rules() -> String {
    FIGURES.iter().map(|figure| format!("  {:24} {}\n", figure.key, figure.rule)).collect()
}
