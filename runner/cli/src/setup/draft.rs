//! Writes the text of a new configuration: what the answers set, and the settings that are changed most often.

use std::path::PathBuf;

/// Settings of a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) base_url: String,
    /// File of the key; `None` if the upstream needs none.
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) default_model: Option<String>,
}

const HEAD: &str = "\
# Configuration of Sluicegate, begun by `sluice init`. All settings: share/doc/sluicegate/sluice.example.toml below the
# installation's prefix, /usr by default.
# `sluice config check` reports every mistake, `sluice config show` the values in effect and their sources.
";

/// Settings that are changed most often, commented out.
const SUGGESTIONS: &str = "\
# ca_file = \"/etc/sluicegate/ca.pem\"    # for https: trusts these CA certificates instead of the system's

# Agents, metrics and health over HTTP, on this host only.
# [api]
# listen = \"127.0.0.1:4180\"

# [worker]
# max_concurrent_runs = 16              # others wait

# Limits of each account that has no entry of its own. A limit of cost needs prices.
# [accounts.\"*\"]
# total_tokens = 5000000
# calls_in_flight = 8

# Dollars for a million tokens. Without a price, the cost of a model's calls is not known.
# [prices.\"MODEL\"]
# input = \"0.15\"
# output = \"0.60\"

# The agent that ships. Others: `sluice agents ls`.
# [agents.\"sandbox:agent\"]
# run_timeout = \"10m\"
# total_tokens = 200000
";

impl Draft {
    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{HEAD}\n[upstream]\nbase_url = {}\n", quoted(&self.base_url));
        if let Some(path) = &self.key_file {
            text += &format!(
                "key_file = {}  # only the key, closed to other users\n",
                quoted(&path.display().to_string())
            );
        }
        match &self.default_model {
            Some(model) => {
                text += &format!("default_model = {}  # for agents without a model\n", quoted(model))
            }
            None => text += "# default_model = \"MODEL\"  # for agents without a model\n",
        }
        text + SUGGESTIONS
    }
}

/// Returns `text` as a TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use platform_runtime::{config::Sources, settings::Settings};

    use super::*;

    fn read(text: String) -> Settings {
        let file = Some(("s.toml".into(), text.clone()));
        Settings::read(&Sources { file, ..Sources::default() })
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn draft() -> Draft {
        Draft {
            base_url: "https://litellm:4000".to_owned(),
            key_file: Some("/etc/a \"b\"/upstream.key".into()),
            default_model: Some("gpt-\"4\"".to_owned()),
        }
    }

    #[test]
    fn a_draft_says_what_was_answered() {
        let upstream = read(draft().text()).upstream;
        assert_eq!(upstream.base_url, draft().base_url);
        assert_eq!((upstream.key_file, upstream.default_model), (draft().key_file, draft().default_model));
        let bare = Draft { key_file: None, default_model: None, ..draft() };
        assert_eq!(read(bare.text()).upstream.key_file, None);
        assert!(!bare.text().contains("/usr/share"), "an installation may have another prefix");
    }

    #[test]
    fn every_suggestion_is_valid_as_it_is() {
        let is_setting =
            |line: &str| line.starts_with("# [") || line.starts_with("# ") && line.contains(" = ");
        let text = draft().text();
        let uncommented: Vec<_> =
            text.lines().map(|line| if is_setting(line) { &line[2..] } else { line }).collect();
        let settings = read(uncommented.join("\n"));
        assert!(settings.api.listen.is_some() && settings.prices.contains_key("MODEL"), "the control");
    }
}
