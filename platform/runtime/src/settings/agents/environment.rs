//! Checks the variables of an agent: none may be Sluicegate's own, and none may hold a secret.
//!
//! Secrets are recognised by name and shape. A name that says `KEY` or `TOKEN` may have a placeholder, for a client that
//! insists on a key. That prevents accidents. An operator who wants to hand an agent a secret
//! can always spell it otherwise.

use std::collections::BTreeMap;

use platform_core::name::env;

use super::Template;
use crate::config::Section;

/// Variables that a run sets itself.
const RESERVED_NAMES: [&str; 9] = [
    env::RUN_ID,
    env::OPENAI_API_BASE,
    env::OPENAI_BASE_URL,
    env::ANTHROPIC_BASE_URL,
    env::COGNI_GATEWAY_URL,
    env::COGNI_HOST_TOOLS,
    env::COGNI_MODEL,
    env::LLM_PROXY_SOCKET,
    env::SANDBOX_START_FILE,
];
/// Prefixes of Sluicegate's own variables, in the images too.
const RESERVED_PREFIXES: [&str; 2] = [env::OVERRIDE_PREFIX, "LLM_PROXY_"];
/// Words that mark a secret anywhere in a name.
const SECRET_WORDS: [&str; 5] = ["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
/// Words that mark a secret at the end of a word of the name: `TOKENIZERS_PARALLELISM` and `MAX_TOKENS` hold none.
const SECRET_SUFFIXES: [&str; 3] = ["KEY", "KEYS", "TOKEN"];
/// Prefixes of common kinds of keys and tokens.
const SECRET_PREFIXES: [&str; 17] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AIza",
    "hf_",
    "npm_",
];
/// Least number of characters that follow the prefix of a secret.
const MIN_SECRET_REST: usize = 9;
/// Words of placeholders. No other words are allowed, since a password may consist of letters.
const PLACEHOLDER_WORDS: [&str; 24] = [
    "a",
    "an",
    "any",
    "anything",
    "api",
    "dummy",
    "empty",
    "example",
    "fake",
    "here",
    "is",
    "key",
    "litellm",
    "local",
    "lm",
    "no",
    "none",
    "not",
    "ollama",
    "placeholder",
    "sluicegate",
    "studio",
    "token",
    "unused",
];
/// Most digits of a number in a placeholder.
const MAX_PLACEHOLDER_DIGITS: usize = 4;

/// Reads the variables of an agent's entry.
pub(super) fn read(section: &Section<'_>) -> BTreeMap<String, Template> {
    let doc = "Variables besides the run's own; `{run_id}` and `{model}` are filled in. None that holds a secret; a name with KEY or TOKEN takes a placeholder such as `unused`.";
    section.values("environment", doc, |name, value| {
        error(name, value).map_or(Ok(()), |problem| Err(problem.into()))
    })
}

/// Returns the reason why a container cannot have this variable; its value has no placeholders.
pub(in crate::settings) fn literal_error(name: &str, value: &str) -> Option<String> {
    error(name, &Template::literal(value))
}

/// Returns the reason why an agent cannot have this variable. The reason repeats nothing of the value.
fn error(name: &str, value: &Template) -> Option<String> {
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    if !is_name {
        return Some(
            "not a name of a variable: letters, digits and `_`, not beginning with a digit".to_owned(),
        );
    }
    if RESERVED_NAMES.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Some("is set by Sluicegate itself: leave it out, or use another name".to_owned());
    }
    let evidence = find_secret_word(name, value).map(|word| format!("its name says `{word}`"));
    let evidence = evidence.or_else(|| {
        value.literals().find_map(secret_value).map(|kind| format!("its value looks like {kind}"))
    });
    evidence.map(|evidence| {
        format!(
            "{evidence}, and an agent is given no secret: leave it out. The model API needs none; a client that insists on a key takes a placeholder such as `unused`"
        )
    })
}

/// Returns the word that marks a name as that of a secret. A placeholder may have the name of a key or token.
fn find_secret_word(name: &str, value: &Template) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let find_suffix =
        || SECRET_SUFFIXES.into_iter().find(|end| name.split('_').any(|word| word.ends_with(end)));
    match SECRET_WORDS.into_iter().find(|word| name.contains(word)) {
        None if is_placeholder(value) => None,
        found => found.or_else(find_suffix),
    }
}

/// Returns whether `value` is of the words of placeholders. One number may follow them: `not-a-key-2026`.
fn is_placeholder(value: &Template) -> bool {
    value.as_literal().is_some_and(|text| {
        let (words, last) = text.rsplit_once('-').unwrap_or((text, ""));
        let is_number =
            last.len() <= MAX_PLACEHOLDER_DIGITS && last.bytes().all(|byte| byte.is_ascii_digit());
        let words = if is_number { words } else { text };
        words.split('-').all(|word| PLACEHOLDER_WORDS.contains(&word))
    })
}

/// Returns the kind of secret that `text` contains.
pub(super) fn secret_value(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") {
        return Some("a PEM block");
    }
    let has_password = |after_scheme: &str| {
        let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, password)| !password.is_empty()))
    };
    if text.match_indices("://").any(|(at, mark)| has_password(&text[at + mark.len()..])) {
        return Some("a URL with a password");
    }
    let is_secret_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    text.split(|c| !is_secret_char(c)).find_map(|word| {
        let has_prefix =
            |prefix: &&str| word.strip_prefix(*prefix).is_some_and(|rest| rest.len() >= MIN_SECRET_REST);
        let is_aws_key_id = word.len() == 20
            && (word.starts_with("AKIA") || word.starts_with("ASIA"))
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if is_aws_key_id || SECRET_PREFIXES.iter().any(has_prefix) {
            return Some("a key or token");
        }
        let mut parts = word.split('.');
        let is_jwt_json =
            |part: Option<&str>| part.is_some_and(|part| part.len() > 8 && part.starts_with("eyJ"));
        (is_jwt_json(parts.next()) && is_jwt_json(parts.next()) && parts.next().is_some())
            .then_some("a JSON web token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: &str) -> Option<String> {
        error(name, &value.parse().unwrap())
    }

    #[test]
    fn apparent_secrets_are_refused_and_not_printed() {
        let jwt = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "c2lnbmF0dXJl"].join(".");
        for (name, value) in [
            ("OPENAI_API_KEY", "Canary"),
            ("OPENAI_API_KEY", "sk-canary-canary"),
            ("AZURE_API_KEY", "canary0a1b2c3d4e5f6a7b8c9d0e1f2a"),
            ("github_token", "canary-canary-canary-canary-canary"),
            ("GithubToken", "canary_1"),
            ("A_KEY", "canary-{run_id}"),
            ("A_KEY", ""),
            ("DB_PASSWORD_FILE", "canary"),
            ("MYSECRETS", "canary"),
            ("TOKEN", "canary!"),
            ("TOKEN", "xkqzvwjhbnmpqrtc"),
            ("APP_TOKEN", "abcd-efgh-ijkl-mnop"),
            ("APP_TOKEN", "key-abcdefgh"),
            ("PIN_TOKEN", "1234"),
            ("PIN_TOKEN", "unused-123456"),
            ("A", "sk-canary-7f3a91c2"),
            ("A", "Bearer ghp_canarycanary"),
            ("A", "{run_id}:xoxb-1234-canary"),
            ("A", "AKIAIOSFODNN7CANARY0"),
            ("A", "-----BEGIN PRIVATE KEY-----\ncanary"),
            ("A", "postgres://user:canary@host/db"),
            ("A", "http://one https://user:canary@two"),
            ("A", &jwt),
        ] {
            let refusal = refusal(name, value).unwrap_or_else(|| panic!("{name}={value} was accepted"));
            assert!(
                refusal.contains("is given no secret: leave it out") && !refusal.contains("canary"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn what_is_ours_or_no_name_is_refused() {
        for name in [
            "RUN_ID",
            "OPENAI_API_BASE",
            "OPENAI_BASE_URL",
            "ANTHROPIC_BASE_URL",
            "COGNI_GATEWAY_URL",
            "COGNI_HOST_TOOLS",
            "COGNI_MODEL",
            "LLM_PROXY_SOCKET",
            "LLM_PROXY_PORT",
            "SLUICE_X",
        ] {
            assert!(
                refusal(name, "x").is_some_and(|refusal| refusal.contains("set by Sluicegate itself")),
                "{name}"
            );
        }
        for name in ["", "1A", "A B", "A=B", "Ä"] {
            assert!(refusal(name, "x").is_some_and(|refusal| refusal.contains("not a name")), "{name}");
        }
    }

    #[test]
    fn what_only_sounds_like_one_is_not() {
        for (name, value) in [
            ("TOKENIZERS_PARALLELISM", "false"),
            ("MAX_TOKENS", "1000"),
            ("KEYBOARD", "de"),
            ("GEMINI_BASE_URL", "http://localhost:8080/v1"),
            ("ANTHROPIC_AUTH_TOKEN", "unused"),
            ("OPENAI_API_KEY", "not-a-key-2026"),
            ("OPENAI_API_KEY", "lm-studio"),
            ("OPENAI_API_KEY", "sluicegate"),
            ("LIBRARY", "sk-learn"),
            ("TZ", "ASIA-PACIFIC hf_transfer"),
            ("REMOTE", "ssh://git@host:22/x"),
            ("GREETING", "eyJust a text. eyJ. x"),
            ("RUN", "{run_id} {model}"),
            ("EMPTY", ""),
        ] {
            assert_eq!(refusal(name, value), None, "{name}={value}");
        }
    }
}
