//! Implements `sluice config`.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use platform_runtime::{
    config::{DEFAULT_FILE, EffectiveSetting, Origin},
    settings::{SectionName, Settings},
    terminal,
};
use serde_json::json;

use super::{Context, Error, error::Misused, exit::Exit, table::Table};
use crate::plural::counted;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Check the configuration as a run reads it, and report every mistake
    Check,
    /// Show the settings in effect, each with its source: default, line of the file, variable or flag
    ///
    /// Secrets are not shown: settings hold only the paths of their files.
    #[command(after_help = "\
Examples:
  sluice config show --changed            settings that differ from their defaults
  sluice config show upstream             one section
  sluice config show --json | jq '.settings[] | select(.source.kind == \"environment\")'")]
    Show(EffectiveSettingsArguments),
    /// Print the JSON Schema of the configuration file
    Schema,
}

#[derive(clap::Args)]
pub(super) struct EffectiveSettingsArguments {
    /// Section to show, or the beginning of a key [default: all]
    section: Option<String>,
    /// Leave out settings that have their defaults
    #[arg(long)]
    changed: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs a subcommand that needs the configuration.
pub(super) fn config(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Check => check(context),
        Command::Show(arguments) => show(context, &arguments),
        Command::Schema => schema(),
    }
}

/// Reports a missing key, and files and sockets of the configuration that other users can change or read. The
/// configuration itself is valid: otherwise the command would have ended before.
fn check(context: &Context) -> Result<Exit, Error> {
    let exposed = context.settings.exposures(Some(context.sources.configuration_path()));
    for exposure in &exposed {
        writeln!(io::stderr(), "{}", terminal::safe(&exposure.to_string()))?;
    }
    for exposure in context.settings.exposed_sockets() {
        writeln!(io::stderr(), "warning: {}", terminal::safe(&exposure.to_string()))?;
    }
    let missing = missing_key(context.settings.upstream.key_file.as_deref());
    if let Some(problem) = &missing {
        writeln!(io::stderr(), "{}", terminal::safe(problem))?;
    }
    if !exposed.is_empty() || missing.is_some() {
        return Ok(Exit::Usage);
    }
    let agents = counted(context.settings.agents.len(), "agent");
    let file = source_in_words(context.sources.file.as_deref(), Path::new(DEFAULT_FILE));
    writeln!(io::stdout(), "the configuration is valid, {agents}, {}", terminal::safe(&file))?;
    Ok(Exit::Success)
}

/// Returns what is wrong with the file of the upstream's key, as far as that shows without reading it: `sluice` must not
/// hold the key. `sluice-proxy --check` reads it.
fn missing_key(path: Option<&Path>) -> Option<String> {
    let path = path?;
    let problem = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => "is empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        // Another user may have to read it.
        Ok(_) | Err(_) => return None,
    };
    Some(format!("upstream.key_file: {} {problem}: write the key into it, with mode 0600", path.display()))
}

/// Returns which file the configuration was read from: the `named` one, else the `default` one if it exists.
fn source_in_words(named: Option<&Path>, default: &Path) -> String {
    match named.or_else(|| default.exists().then_some(default)) {
        Some(path) => format!("from {}", path.display()),
        None => format!("from no file: none is named, and there is no {}", default.display()),
    }
}

fn show(context: &Context, arguments: &EffectiveSettingsArguments) -> Result<Exit, Error> {
    let mut settings = Settings::explain(&context.sources.locate()?);
    if let Some(section) = &arguments.section {
        settings.retain(|setting| is_in(section, &setting.key));
        if settings.is_empty() {
            let names: Vec<_> = SectionName::ALL.iter().map(|section| section.name()).collect();
            return Err(Misused(format!(
                "no setting begins with `{section}`; sections: {}",
                names.join(", ")
            ))
            .into());
        }
    }
    settings.retain(|setting| !arguments.changed || setting.origin.is_some());
    let mut out = io::stdout();
    if arguments.json {
        let settings: Vec<_> = settings.iter().map(as_json).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "settings": settings }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["SETTING", "VALUE", "SOURCE"]);
    for setting in &settings {
        let value = setting.value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        table.row([setting.key.clone(), value, source_of(setting)]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

/// Returns whether `key` is `section`, or lies below it.
fn is_in(section: &str, key: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the source of a setting in words.
fn source_of(setting: &EffectiveSetting) -> String {
    match &setting.origin {
        Some(origin) => origin.to_string(),
        None if setting.value.is_some() => "default".to_owned(),
        None => "not set".to_owned(),
    }
}

fn as_json(setting: &EffectiveSetting) -> serde_json::Value {
    let source = match &setting.origin {
        Some(Origin::File { path, line }) => json!({ "kind": "file", "file": path, "line": line }),
        Some(Origin::Variable(name)) => json!({ "kind": "environment", "variable": name }),
        Some(Origin::Flag(flag)) => json!({ "kind": "flag", "flag": flag }),
        Some(Origin::Nowhere) | None if setting.value.is_some() => json!({ "kind": "default" }),
        Some(Origin::Nowhere) | None => json!({ "kind": "unset" }),
    };
    json!({ "key": setting.key, "value": setting.value, "source": source })
}

pub(super) fn schema() -> Result<Exit, Error> {
    writeln!(io::stdout(), "{:#}", Settings::json_schema())?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_names_the_file_it_read() {
        let [missing, there] = ["/nowhere/sluice.toml", "/proc/self/stat"].map(Path::new);
        assert_eq!(source_in_words(Some(missing), there), "from /nowhere/sluice.toml");
        assert_eq!(source_in_words(None, there), "from /proc/self/stat");
        let none = source_in_words(None, missing);
        assert_eq!(none, "from no file: none is named, and there is no /nowhere/sluice.toml");
    }

    #[test]
    fn a_missing_key_file_is_a_mistake() {
        let missing = missing_key(Some(Path::new("/nowhere/key"))).unwrap();
        assert!(missing.starts_with("upstream.key_file: /nowhere/key does not exist"), "{missing}");
        assert_eq!(missing_key(Some(Path::new(env!("CARGO_MANIFEST_DIR")))), None, "it is there");
        assert_eq!(missing_key(None), None);
    }

    #[test]
    fn a_section_is_told_from_a_longer_word() {
        assert!(is_in("proxy", "proxy.threads") && is_in("proxy.threads", "proxy.threads"));
        assert!(!is_in("pro", "proxy.threads") && !is_in("proxy.threads.x", "proxy.threads"));
    }
}
