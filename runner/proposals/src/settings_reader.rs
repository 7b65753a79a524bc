//! Reads the texts that configuration files could have, with the other sources of this process's settings.

use std::path::Path;

use platform_core::id::AgentId;
use platform_runtime::{
    config::{ConfigErrors, Environment, Sources},
    settings::Settings,
};

/// Sources of settings besides the file, which a check of a file needs.
#[derive(Debug, Clone, Default)]
pub struct SettingsReader {
    /// Environment of this process.
    pub environment: Environment,
    /// Settings of the command line.
    pub flags: Vec<String>,
}

impl SettingsReader {
    /// Reads the settings as they were with a file of this text. `path` is for messages.
    ///
    /// # Errors
    /// All mistakes together.
    pub fn read(&self, path: &Path, text: &str) -> Result<Settings, ConfigErrors> {
        let file = Some((path.to_owned(), text.to_owned()));
        Settings::read(&Sources { file, environment: self.environment.clone(), flags: self.flags.clone() })
    }

    /// Returns the mistakes of a file that gets an entry of `agent`. Also checks that no other agent changes.
    #[must_use]
    pub fn problems(&self, path: &Path, agent: &AgentId, before: &str, after: &str) -> Vec<String> {
        let settings = match self.read(path, after) {
            Err(errors) => return errors.to_string().lines().map(str::to_owned).collect(),
            Ok(settings) => settings,
        };
        let others = |settings: &Settings| -> Vec<_> {
            settings.agents.clone().into_iter().filter(|(id, _)| id != agent).collect()
        };
        match self.read(path, before) {
            Ok(earlier) if others(&earlier) != others(&settings) => {
                vec!["the draft would change other agents: edit the file by hand".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::with_entry;

    /// A text of another agent may read like the heading of the entry.
    #[test]
    fn a_change_of_another_agent_is_found() {
        let agent = AgentId::parse("team:a").unwrap();
        let entry = "[agents.\"team:a\"]\nimage = \"a:1\"\nargv = [\"a\"]\n";
        let problems = |text: &str| {
            let before = format!("[agents.'team:b']\nimage = 'b:1'\nargv = ['b', \"\"\"\n{text}\"\"\"]\n");
            let (after, _) = with_entry(&before, &agent, entry);
            SettingsReader::default().problems(Path::new("sluice.toml"), &agent, &before, &after)
        };
        assert_eq!(problems("old\n[end]\n"), Vec::<String>::new(), "control");
        let found = problems("[agents.'team:a']\nold\n[end]\n");
        assert!(found[0].contains("would change other agents"), "{found:?}");
    }
}
