//! Parses templates of queries in PromQL, and renders them with values of parameters.
//!
//! A template has `$account` as the first matcher of each selector, so that no query reads another account's series.
//! Every other placeholder, `$name`, is one token with its own type, and its value stays that token.

use std::collections::BTreeMap;

use platform_core::invalid::InvalidValue;

use super::query_tokens::{Token, tokens};

/// Placeholder of the matcher of the account.
const ACCOUNT: &str = "account";
/// Words after which a list of labels stands in parentheses.
const LABEL_LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// Words that are neither functions nor metrics.
const WORDS: [&str; 11] =
    ["and", "or", "unless", "atan2", "bool", "offset", "start", "end", "inf", "nan", "default"];
/// Functions after which a list of labels may stand before their arguments.
const AGGREGATIONS: [&str; 14] = [
    "sum",
    "min",
    "max",
    "avg",
    "count",
    "group",
    "stddev",
    "stdvar",
    "topk",
    "bottomk",
    "quantile",
    "count_values",
    "limitk",
    "limit_ratio",
];
/// Units of a duration.
const UNITS: [&str; 7] = ["ms", "s", "m", "h", "d", "w", "y"];
/// Most digits of a number in a value.
const MAX_DIGITS: usize = 9;
/// Most bytes of a text as a value.
const MAX_TEXT: usize = 256;

/// Kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A text, which is compared with a label.
    Text,
    /// A whole number that is not negative.
    Integer,
    /// A duration, such as `5m`.
    Duration,
}

impl ParameterKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Text, Self::Integer, Self::Duration];

    /// Returns the kind as a word of the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Duration => "duration",
        }
    }
}

/// Template of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryTemplate {
    parts: Vec<TemplatePart>,
    /// Parameters by name.
    pub parameters: BTreeMap<String, ParameterKind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Plain(String),
    Account,
    Parameter(String, ParameterKind),
}

/// Reason why a query cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The value of a parameter is missing.
    #[error("parameter `{name}` is missing")]
    Missing {
        /// Name of the parameter.
        name: String,
    },
    /// The template has no such parameter.
    #[error("there is no parameter `{name}`")]
    Unknown {
        /// Name of the parameter.
        name: String,
    },
    /// The value is not of the parameter's kind.
    #[error("parameter `{name}` is not {expected}")]
    Invalid {
        /// Name of the parameter.
        name: String,
        /// Description of a value.
        expected: &'static str,
    },
}

impl QueryTemplate {
    /// Parses `text`, with `parameters` as its placeholders.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn parse(text: &str, parameters: BTreeMap<String, ParameterKind>) -> Result<Self, InvalidValue> {
        let tokens = tokens(text)?;
        check_selectors(&tokens)?;
        let mut parts: Vec<TemplatePart> = Vec::new();
        for token in &tokens {
            parts.push(match token {
                Token::Placeholder(ACCOUNT) => TemplatePart::Account,
                Token::Placeholder(name) => {
                    let kind = parameters.get(*name).copied();
                    let kind = kind.ok_or_else(|| format!("`${name}` is not in `parameters`"))?;
                    TemplatePart::Parameter((*name).to_owned(), kind)
                }
                Token::Word(text) | Token::Text(text) | Token::Number(text) | Token::Sign(text) => {
                    TemplatePart::Plain((*text).to_owned())
                }
            });
        }
        if !parts.contains(&TemplatePart::Account) {
            return Err("the query selects no series of an account: write `metric{$account}`".into());
        }
        let is_used = |name: &&String| {
            parts.iter().any(|part| matches!(part, TemplatePart::Parameter(used, _) if used == *name))
        };
        if let Some(unused) = parameters.keys().find(|name| !is_used(name)) {
            return Err(format!("parameter `{unused}` is not in the query").into());
        }
        Ok(Self { parts, parameters })
    }

    /// Returns the query for the series with `account` in the label `label`.
    ///
    /// # Errors
    /// [`RenderError`], which names the parameter.
    pub fn render(
        &self,
        label: &str,
        account: &str,
        values: &BTreeMap<String, String>,
    ) -> Result<String, RenderError> {
        if let Some(name) = values.keys().find(|name| !self.parameters.contains_key(*name)) {
            return Err(RenderError::Unknown { name: name.clone() });
        }
        let mut query = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Plain(text) => query.push_str(text),
                TemplatePart::Account => {
                    query.push_str(label);
                    query.push('=');
                    query.push_str(&quoted(account));
                }
                TemplatePart::Parameter(name, kind) => {
                    let missing = || RenderError::Missing { name: name.clone() };
                    let value = values.get(name).ok_or_else(missing)?;
                    query.push_str(&rendered(name, *kind, value)?);
                }
            }
            // Tokens stay apart, whatever the values are.
            query.push(' ');
        }
        Ok(query.trim_end().to_owned())
    }
}

fn rendered(name: &str, kind: ParameterKind, value: &str) -> Result<String, RenderError> {
    let invalid = |expected| RenderError::Invalid { name: name.to_owned(), expected };
    let is_number =
        |text: &str| (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match kind {
        ParameterKind::Text if value.len() <= MAX_TEXT => Ok(quoted(value)),
        ParameterKind::Text => Err(invalid("a text of at most 256 bytes")),
        ParameterKind::Integer if is_number(value) => Ok(value.to_owned()),
        ParameterKind::Integer => Err(invalid("a whole number")),
        ParameterKind::Duration => {
            let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, unit) = value.split_at(digits);
            let is_duration = is_number(number) && UNITS.contains(&unit);
            is_duration.then(|| value.to_owned()).ok_or_else(|| invalid("a duration such as 5m"))
        }
    }
}

/// Returns `text` as a string of PromQL.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Checks that each selector begins with the account, and that no placeholder of the account stands elsewhere.
fn check_selectors(tokens: &[Token<'_>]) -> Result<(), InvalidValue> {
    let sign = |at: usize| match tokens.get(at) {
        Some(Token::Sign(sign)) => *sign,
        _ => "",
    };
    let mut at = 0;
    let mut is_in_selector = false;
    while let Some(token) = tokens.get(at) {
        match *token {
            Token::Sign("{") => {
                if tokens.get(at + 1) != Some(&Token::Placeholder(ACCOUNT)) {
                    return Err("a selector does not begin with `{$account`".into());
                }
                if !matches!(sign(at + 2), "," | "}") {
                    return Err("after `$account` a comma has to stand, or the selector's end".into());
                }
                is_in_selector = true;
                at += 1;
            }
            Token::Sign("}") => is_in_selector = false,
            Token::Placeholder(ACCOUNT) => return Err("`$account` stands outside of a selector".into()),
            Token::Placeholder(name) if is_in_selector && !matches!(sign(at.wrapping_sub(1)), "=" | "!=") => {
                return Err(format!("`${name}` in a selector has to stand after `=` or `!=`").into());
            }
            Token::Word(word)
                if LABEL_LISTS.contains(&word.to_lowercase().as_str()) && sign(at + 1) == "(" =>
            {
                let end = tokens[at..].iter().position(|token| *token == Token::Sign(")"));
                at += end.ok_or_else(|| format!("the list after `{word}` has no end"))?;
            }
            Token::Word(word) if !is_in_selector => check_word(word, tokens.get(at + 1))?,
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Checks that a word is not a metric without a selector.
fn check_word(word: &str, next: Option<&Token<'_>>) -> Result<(), InvalidValue> {
    let is_keyword = |word: &str| WORDS.contains(&word.to_lowercase().as_str());
    let is_list = |word: &str| LABEL_LISTS.contains(&word.to_lowercase().as_str());
    let is_aggregation = AGGREGATIONS.contains(&word.to_lowercase().as_str());
    match next {
        Some(Token::Sign("(" | "{")) => Ok(()),
        Some(Token::Word(next)) if is_list(next) && is_aggregation => Ok(()),
        _ if is_keyword(word) || is_list(word) => Ok(()),
        _ => Err(format!("`{word}` selects series of all accounts: write `{word}{{$account}}`").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::query_tokens::text_length;

    fn parameters(names: &[(&str, ParameterKind)]) -> BTreeMap<String, ParameterKind> {
        names.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
    }

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_selector_gets_the_account() {
        let all = [("model", ParameterKind::Text), ("window", ParameterKind::Duration)];
        let template = QueryTemplate::parse(
            "sum by (model) (rate(calls_total{$account, model = $model}[$window])) / on(x) group_left a:b{$account} >= 5m offset 1h:5m + 1.5e-3",
            parameters(&all),
        );
        let values = values(&[("model", "m\"} or x{"), ("window", "5m")]);
        let query = template.unwrap().render("account", "acct-1", &values).unwrap();
        let expected = r#"sum by ( model ) ( rate ( calls_total { account="acct-1" , model = "m\"} or x{" } [ 5m ] ) ) / on ( x ) group_left a:b { account="acct-1" } >= 5m offset 1h : 5m + 1.5e-3"#;
        assert_eq!(query, expected);
    }

    #[test]
    fn templates_of_other_accounts_are_refused() {
        for (text, problem) in [
            ("up", "selects series of all accounts"),
            ("sum(up)", "selects series of all accounts"),
            ("up{$account} or up", "selects series of all accounts"),
            ("up[5m]", "selects series of all accounts"),
            ("up{}", "does not begin with `{$account`"),
            ("{__name__=~\".+\"}", "does not begin with `{$account`"),
            ("up{job=\"a\", $account}", "does not begin with `{$account`"),
            ("up{$account or job=\"a\"}", "a comma has to stand"),
            ("$account", "outside of a selector"),
            ("\"up{$account}\"", "selects no series"),
            ("vector(1)", "selects no series"),
            ("up{$account} # or up", "comment"),
            ("up{$account, model=~$model}", "after `=` or `!=`"),
            ("up{$account, $model=\"x\"}", "after `=` or `!=`"),
            ("up{$account, model=$modell}", "not in `parameters`"),
            ("up{$account}", "`model` is not in the query"),
            ("up{$account, model=$model} + sum by (up", "has no end"),
            ("up{$account, model=$model, x=\"}", "a string has no end"),
            ("offset{$account, model=$model} BY (x) and up BY", "selects series"),
        ] {
            let error = QueryTemplate::parse(text, parameters(&[("model", ParameterKind::Text)]))
                .unwrap_err()
                .to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_value_stays_one_token() {
        let query = "a{$account, b=$t}[$d] * $i";
        let kinds =
            [("t", ParameterKind::Text), ("d", ParameterKind::Duration), ("i", ParameterKind::Integer)];
        let template = QueryTemplate::parse(query, parameters(&kinds)).unwrap();
        let render = |t, d, i| template.render("account", "a", &values(&[("t", t), ("d", d), ("i", i)]));
        assert_eq!(render("x", "5m", "7").unwrap(), r#"a { account="a" , b = "x" } [ 5m ] * 7"#);
        for text in
            ["\"", "\\", "\"} or b{x=\"", "\n", "`", "\u{0}", "\\\"} or b{", "}", "$account", "é\u{2028}"]
        {
            let rendered = render(text, "5m", "7").unwrap();
            let [selector, _] = rendered.split("] *").collect::<Vec<_>>()[..] else { panic!("{rendered}") };
            let start = selector.find("b = \"").unwrap() + 4;
            let length = text_length(&selector[start..], '"').unwrap();
            assert_eq!(&selector[start + length..], " } [ 5m ", "{text:?}: {rendered}");
        }
        for (d, i) in [
            ("5m] or b[1m", "7"),
            ("5", "7"),
            ("", "7"),
            ("m", "7"),
            ("5M", "7"),
            ("-5m", "7"),
            ("5m", "7 or b"),
            ("5m", "-7"),
            ("5m", "1e9"),
            ("5m", "0x7"),
            ("5m", "٣"),
            ("5m", ""),
        ] {
            assert!(matches!(render("x", d, i), Err(RenderError::Invalid { .. })), "{d} {i}");
        }
        let missing = template.render("account", "a", &values(&[("t", "x")]));
        assert!(matches!(missing, Err(RenderError::Missing { .. })));
        let unknown = template.render("account", "a", &values(&[("account", "b")]));
        assert_eq!(unknown, Err(RenderError::Unknown { name: "account".to_owned() }));
    }
}
