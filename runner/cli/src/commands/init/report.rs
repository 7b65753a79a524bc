//! Prints what `sluice init` has written and found, and the commands that come next.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use platform_core::{control::UpstreamHealth, name};
use platform_runtime::{
    config::{DEFAULT_FILE, ValidationError},
    terminal,
};
use runner_audit::advice::shell;
use serde_json::json;

use super::answers::{Answers, KeyChoice};
use crate::{
    doctor::{UpstreamProblem, upstream_in_words},
    setup::{Draft, Site},
};

/// Places where packages and `make install` put the unit of `sluice up`.
const UNITS: [&str; 3] = [
    "/usr/lib/systemd/system/sluice.service",
    "/usr/local/lib/systemd/system/sluice.service",
    "/etc/systemd/system/sluice.service",
];
/// Exists while systemd runs.
const SYSTEMD: &str = "/run/systemd/system";

/// User of the unit of the data plane, which cannot start without it.
const SERVICE_USER: &str = "sluice-proxy";
const USERS: &str = "/etc/passwd";

/// Program that starts `sluice up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Starter {
    Systemd,
    Shell,
}

impl Starter {
    /// Returns the one of this machine.
    pub(super) fn of_machine() -> Self {
        let has_units = Path::new(SYSTEMD).exists() && UNITS.iter().any(|unit| Path::new(unit).exists());
        if has_units { Self::for_users(&fs::read_to_string(USERS).unwrap_or_default()) } else { Self::Shell }
    }

    fn for_users(passwd: &str) -> Self {
        let has_user = passwd.lines().any(|line| line.split(':').next() == Some(SERVICE_USER));
        if has_user { Self::Systemd } else { Self::Shell }
    }
}

/// Everything that `sluice init` reports.
pub(super) struct Report<'a> {
    pub(super) site: &'a Site,
    pub(super) answers: &'a Answers,
    pub(super) draft: &'a Draft,
    pub(super) health: &'a UpstreamHealth,
    /// Problem that `--force` has overruled.
    pub(super) problem: Option<UpstreamProblem>,
    pub(super) exposures: Vec<ValidationError>,
    /// Obstacles on Docker.
    pub(super) notes: Vec<String>,
    /// Mark that `SLUICE_CONFIG` names the new file.
    pub(super) is_configured: bool,
    /// Mark that the environment holds the key, with which `sluice up` refuses to start.
    pub(super) key_was_exported: bool,
    pub(super) starter: Starter,
}

impl Report<'_> {
    pub(super) fn print(&self, format: ReportForm) -> io::Result<()> {
        for exposure in &self.exposures {
            writeln!(io::stderr(), "warning: {}", terminal::safe(&exposure.to_string()))?;
        }
        let mut out = io::stdout();
        match format {
            ReportForm::Json => writeln!(out, "{}", terminal::safe_json(&self.json().to_string())),
            ReportForm::Text => write!(out, "{}", terminal::safe(&self.text())),
        }
    }

    fn text(&self) -> String {
        let key = match &self.answers.key {
            KeyChoice::Write(key) => {
                let path = self.site.key().display();
                format!("wrote     {path} (mode 0600), the key from {}\n", key.origin.in_words())
            }
            KeyChoice::InPlace(_) => format!("key       {}, as it was\n", self.site.key().display()),
            KeyChoice::None => "key       none\n".to_owned(),
        };
        let found = match &self.problem {
            Some(problem) => problem.to_string(),
            None => format!("{}: {}", self.draft.base_url, upstream_in_words(self.health)),
        };
        let model = self.draft.default_model.as_deref().unwrap_or("none: runs need --model");
        let notes: String = self.notes.iter().map(|note| format!("note      {note}\n")).collect();
        let next: String = self.next_commands().iter().map(|command| format!("  {command}\n")).collect();
        format!(
            "wrote     {}\n{key}upstream  {found}\nmodel     {model}\n{notes}\nNext:\n{next}",
            self.site.configuration().display()
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "config": self.site.configuration(),
            "key_file": self.draft.key_file,
            "key_from": self.answers.key.given().map(|key| key.origin.in_words()),
            "upstream": { "base_url": self.draft.base_url, "health": self.health },
            "default_model": self.draft.default_model,
            "notes": self.notes,
            "next": self.next_commands(),
        })
    }

    /// Returns the commands that lead to a first answer.
    fn next_commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        if self.key_was_exported {
            commands.push(format!("unset {}", name::env::LITELLM_MASTER_KEY));
        }
        let is_default = self.site.configuration() == Path::new(DEFAULT_FILE);
        // All others need it, `sluice agents add` too.
        if !is_default && !self.is_configured {
            let path = self.site.configuration().display().to_string();
            commands.push(format!("export {}={}", name::env::SLUICE_CONFIG, shell(&path)));
        }
        commands
            .extend(self.answers.agents.iter().map(|agent| format!("sluice agents add {}", shell(agent))));
        // The unit of the proxy loads the key from its file, which has to be there.
        let is_service = self.starter == Starter::Systemd && is_default && self.draft.key_file.is_some();
        let start = if is_service { "systemctl enable --now sluice-proxy sluice" } else { "sluice up &" };
        commands.push(start.to_owned());
        commands.push("sluice run \"In one sentence: what is a sluice gate?\"".to_owned());
        commands
    }
}

/// Form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportForm {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_starts_it_where_the_unit_has_a_user() {
        let root = "root:x:0:0:root:/root:/bin/bash\n";
        assert_eq!(Starter::for_users(root), Starter::Shell);
        assert_eq!(Starter::for_users(&format!("{root}sluice-proxyd:x:9:9:::\n")), Starter::Shell);
        assert_eq!(Starter::for_users(&format!("{root}sluice-proxy:x:998:998:::\n")), Starter::Systemd);
    }
}
