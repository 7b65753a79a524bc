//! Reads the settings of the tool that queries metrics: the address of a Prometheus, and templates of queries.

use std::collections::BTreeMap;

use platform_core::{invalid::InvalidValue, limit::Millis};

use super::{
    BaseUrl, Scheme,
    query_template::{ParameterKind, QueryTemplate},
};
use crate::config::Section;

/// Longest time of a query.
const QUERY_TIMEOUT: Millis = Millis::seconds(10);

/// `[tools.metrics]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolMetrics {
    /// Address of a Prometheus; the tool is unavailable without one.
    pub url: Option<BaseUrl>,
    /// Label that has the account.
    pub account_label: String,
    /// Longest time of a query.
    pub query_timeout: Millis,
    /// Templates by name.
    pub templates: BTreeMap<String, MetricTemplate>,
}

/// `[tools.metrics.templates.NAME]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricTemplate {
    /// Description for agents.
    pub description: String,
    /// The query.
    pub query: QueryTemplate,
}

impl ToolMetrics {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let doc = "Address of a Prometheus, `http://HOST:PORT`, for the tool `core__metrics_query`, which is unavailable without one.";
        let url: Option<String> = section.field("url", doc).optional();
        let url = url.and_then(|url| read_url(section, &url));
        let doc = "Label of metrics that has the account. Each query is for the account of its run alone.";
        let account_label: String = section.field("account_label", doc).or("account".to_owned());
        if !is_name(&account_label) {
            section.reject("account_label", format!("`{account_label}` is not the name of a label"));
        }
        let query_timeout =
            section.field("query_timeout", "Longest time of a query of metrics.").or(QUERY_TIMEOUT);
        let doc =
            "Queries that agents may make, by name. Agents choose a name and the values of its parameters.";
        let templates = section.each("templates", doc, read_template).into_iter().flatten().collect();
        Self { url, account_label, query_timeout, templates }
    }
}

fn read_url(section: &Section<'_>, text: &str) -> Option<BaseUrl> {
    match BaseUrl::parse(text) {
        Ok(url) if url.scheme == Scheme::Http => Some(url),
        Ok(_) => {
            section.reject(
                "url",
                "it is not `http://`: metrics are read on this host or its network".to_owned(),
            );
            None
        }
        Err(problem) => {
            section.reject("url", problem);
            None
        }
    }
}

fn read_template(name: &str, section: &Section<'_>) -> Option<(String, MetricTemplate)> {
    let description: String = section.field("description", "Description for agents.").or(String::new());
    let doc = "Query in PromQL. The first matcher of each selector is `$account`: `calls_total{$account, model=$model}[$window]`.";
    let query: Option<String> = section.field("query", doc).optional();
    let doc = "Parameters, each `NAME:KIND`: of kind `text`, which is compared with a label, `integer` or `duration`.";
    let parameters: Vec<String> = section.field("parameters", doc).list_or(vec![]);
    let mut kinds = BTreeMap::new();
    for parameter in &parameters {
        match read_parameter(parameter) {
            Ok((name, kind)) => drop(kinds.insert(name, kind)),
            Err(problem) => section.reject("parameters", problem),
        }
    }
    if !is_name(name) && name != "*" {
        section.reject_itself(format!("`{name}` is not the name of a template: use letters, digits and `_`"));
    }
    // The example from which the schema is built has no query.
    let Some(query) = query else {
        if name != "*" {
            section.reject_itself("it has no `query`".to_owned());
        }
        return None;
    };
    let query =
        QueryTemplate::parse(&query, kinds).map_err(|problem| section.reject("query", problem)).ok()?;
    Some((name.to_owned(), MetricTemplate { description, query }))
}

fn read_parameter(text: &str) -> Result<(String, ParameterKind), InvalidValue> {
    let (name, kind) = text.split_once(':').ok_or_else(|| format!("`{text}` is not NAME:KIND"))?;
    if !is_name(name) || name == "account" {
        return Err(format!("`{name}` cannot be the name of a parameter").into());
    }
    let known = ParameterKind::ALL.into_iter().find(|known| known.word() == kind);
    let kind = known.ok_or_else(|| format!("`{kind}` is not a kind: use text, integer or duration"))?;
    Ok((name.to_owned(), kind))
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{ConfigErrors, Sources},
        settings::Settings,
    };

    fn read(text: &str) -> Result<ToolMetrics, ConfigErrors> {
        let sources = Sources { file: Some(("s.toml".into(), text.to_owned())), ..Sources::default() };
        Settings::read(&sources).map(|settings| settings.tools.metrics)
    }

    #[test]
    fn a_template_is_read_with_its_parameters() {
        let metrics = read(
            "[tools.metrics]\nurl = 'http://127.0.0.1:9090'\n[tools.metrics.templates.calls]\n\
             query = 'rate(calls{$account, model=$model}[$window])'\nparameters = ['model:text', 'window:duration']",
        );
        let metrics = metrics.unwrap();
        assert_eq!(metrics.url.map(|url| url.port), Some(9090));
        let kinds: Vec<_> = metrics.templates["calls"].query.parameters.values().copied().collect();
        assert_eq!(kinds, [ParameterKind::Text, ParameterKind::Duration]);
    }

    #[test]
    fn all_mistakes_of_templates_are_reported() {
        for (text, problem) in [
            ("[tools.metrics]\nurl = 'https://a'", "is not `http://`"),
            ("[tools.metrics]\naccount_label = 'a b'", "not the name of a label"),
            ("[tools.metrics.templates.a]\nquery = 'up'", "selects series of all accounts"),
            ("[tools.metrics.templates.a]\ndescription = 'x'", "no `query`"),
            ("[tools.metrics.templates.a-b]\nquery = 'up{$account}'", "not the name of a template"),
            ("[tools.metrics.templates.a]\nquery = 'up{$account}'\nparameters = ['x']", "not NAME:KIND"),
            ("[tools.metrics.templates.a]\nquery = 'up{$account}'\nparameters = ['x:regex']", "not a kind"),
            (
                "[tools.metrics.templates.a]\nquery = 'up{$account}'\nparameters = ['account:text']",
                "cannot be",
            ),
        ] {
            let errors = read(text).unwrap_err().to_string();
            assert!(errors.contains(problem), "{text}: {errors}");
        }
    }
}
