//! secrets finds credentials in bytes: those that the caller knows, and those with the form of a known service.

use std::{fmt, sync::Arc};

use memchr::memmem;
use platform_core::secret::Secret;

use crate::harmless::plain;

/// Fewest bytes of a known secret. Shorter ones would be found everywhere.
const MIN_KNOWN: usize = 8;

/// Beginning, in a line, of the mark before a private key.
const KEY_BEGIN: &[u8] = b"-----BEGIN ";
/// Words in that mark.
const KEY_WORDS: &[u8] = b"PRIVATE KEY";
/// Most bytes between the beginning of the mark and the end of its words.
const MAX_KEY_MARK: usize = 48;

/// Form of the tokens of a service.
struct TokenForm {
    name: &'static str,
    beginning: &'static [u8],
    belongs: fn(u8) -> bool,
    /// Fewest bytes behind the beginning.
    least: usize,
    /// Demand that the bytes behind it have a digit and a capital letter.
    is_random: bool,
}

const fn form(
    name: &'static str,
    beginning: &'static [u8],
    belongs: fn(u8) -> bool,
    least: usize,
) -> TokenForm {
    TokenForm { name, beginning, belongs, least, is_random: false }
}

const fn random(form: TokenForm) -> TokenForm {
    TokenForm { is_random: true, ..form }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Forms of tokens that are known.
const FORMS: [TokenForm; 16] = [
    form("GitHub token", b"ghp_", is_plain, 36),
    form("GitHub token", b"gho_", is_plain, 36),
    form("GitHub token", b"ghu_", is_plain, 36),
    form("GitHub token", b"ghs_", is_plain, 36),
    form("GitHub token", b"ghr_", is_plain, 36),
    form("GitHub token", b"github_pat_", is_url_safe, 22),
    form("GitLab token", b"glpat-", is_url_safe, 20),
    random(form("model provider's key", b"sk-", is_url_safe, 20)),
    form("AWS access key", b"AKIA", is_capital, 16),
    form("AWS access key", b"ASIA", is_capital, 16),
    random(form("Google key", b"AIza", is_url_safe, 35)),
    form("Slack token", b"xoxb-", is_url_safe, 20),
    form("Slack token", b"xoxp-", is_url_safe, 20),
    form("npm token", b"npm_", is_plain, 36),
    form("Stripe key", b"sk_live_", is_plain, 24),
    form("PyPI token", b"pypi-AgEIcHlwaS5vcmc", is_url_safe, 20),
];

impl TokenForm {
    /// Returns whether `content` has such a token. Reads each byte once, however many tokens seem to begin in it.
    fn is_in(&self, content: &[u8]) -> bool {
        let mut run = TokenRun::default();
        memmem::find_iter(content, self.beginning).any(|at| {
            if at > 0 && is_plain(content[at - 1]) {
                return false;
            }
            let start = at + self.beginning.len();
            if start >= run.end {
                run = TokenRun::read(content, start, self.belongs);
            }
            run.end - start >= self.least && (!self.is_random || run.looks_random_from(start))
        })
    }
}

/// Bytes in a row that belong to a token.
#[derive(Default)]
struct TokenRun {
    end: usize,
    last_digit: Option<usize>,
    last_capital: Option<usize>,
}

impl TokenRun {
    fn read(content: &[u8], start: usize, belongs: fn(u8) -> bool) -> Self {
        let length = content[start..].iter().take_while(|byte| belongs(**byte)).count();
        let token = &content[start..start + length];
        let last = |test: fn(&u8) -> bool| token.iter().rposition(test).map(|at| start + at);
        Self {
            end: start + length,
            last_digit: last(u8::is_ascii_digit),
            last_capital: last(u8::is_ascii_uppercase),
        }
    }

    /// Returns whether the bytes from `start` on have a digit and a capital letter.
    fn looks_random_from(&self, start: usize) -> bool {
        [self.last_digit, self.last_capital].iter().all(|last| last.is_some_and(|last| last >= start))
    }
}

/// Search for secrets.
#[derive(Clone, Default)]
pub struct SecretScan {
    known: Arc<Vec<Secret>>,
}

impl fmt::Debug for SecretScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretScan({} known)", self.known.len())
    }
}

impl SecretScan {
    /// Creates a search that also finds `known` secrets, such as the keys of this host and those given to the run.
    /// Ones of fewer than 8 bytes are left out.
    #[must_use]
    pub fn new(known: Vec<Secret>) -> Self {
        let known = known.into_iter().filter(|secret| secret.expose().len() >= MIN_KNOWN);
        Self { known: Arc::new(known.collect()) }
    }

    /// Returns a name for the first secret in a text, also if characters that are not seen stand in it: some programs leave
    /// them out.
    #[must_use]
    pub fn find_in_text(&self, text: &[u8]) -> Option<&'static str> {
        self.find(text).or_else(|| self.find(plain(&String::from_utf8_lossy(text)).as_bytes()))
    }

    /// Returns a name for the first secret in `content`, never the secret.
    #[must_use]
    pub fn find(&self, content: &[u8]) -> Option<&'static str> {
        let is_known = |secret: &Secret| memmem::find(content, secret.expose().as_bytes()).is_some();
        if self.known.iter().any(is_known) {
            return Some("secret of this host");
        }
        if runner_files::begins_with_key(content) || has_key(content) {
            return Some("private key");
        }
        FORMS.iter().find(|form| form.is_in(content)).map(|form| form.name)
    }
}

/// Returns whether `content` has the mark of a private key anywhere in a line, as in JSON or indented YAML.
fn has_key(content: &[u8]) -> bool {
    memmem::find_iter(content, KEY_BEGIN).any(|at| {
        let rest = &content[at + KEY_BEGIN.len()..];
        let rest = &rest[..rest.len().min(MAX_KEY_MARK)];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        memmem::find(line, KEY_WORDS).is_some_and(|end| line[end + KEY_WORDS.len()..].starts_with(b"-----"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a file that seems to hold a token in every third one.
    const SEEMING: usize = 4 << 20;

    #[test]
    fn seeming_tokens_cost_no_more_than_bytes() {
        let scan = SecretScan::default();
        for piece in ["sk-", "AIza-", "AKIA"] {
            let seeming = format!("x{}", piece.repeat(SEEMING / piece.len()));
            assert_eq!(scan.find(seeming.as_bytes()), None, "{piece}");
        }
        // A true one at the end of them is found.
        let hidden = format!("{}aB3aB3aB3aB3aB3aB3aB3aB3", "sk-".repeat(1000));
        assert_eq!(scan.find(hidden.as_bytes()), Some("model provider's key"));
    }

    #[test]
    fn tokens_are_known_by_their_form() {
        let scan =
            SecretScan::new(vec![Secret::new("canary-7f3a91".to_owned()), Secret::new("short".to_owned())]);
        let letters = "aB3".repeat(20);
        for text in [
            format!("token=ghp_{}", &letters[..36]),
            format!("github_pat_{letters}"),
            format!("OPENAI='sk-proj-{letters}'"),
            format!("sk-{}", &letters[..22]),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("AIza{}", &letters[..35]),
            format!("xoxb-{letters}"),
            format!("glpat-{letters}"),
            "a\n-----BEGIN OPENSSH PRIVATE KEY-----\n".to_owned(),
            "{\"key\": \"-----BEGIN PRIVATE KEY-----\\nMII\"}".to_owned(),
            "key: |\n    -----BEGIN EC PRIVATE KEY-----\n".to_owned(),
            "x canary-7f3a91 y".to_owned(),
        ] {
            assert!(scan.find(text.as_bytes()).is_some(), "{text}");
        }
        for text in [
            "short",
            "ghp_short",
            "task-aB3aB3aB3aB3aB3aB3aB3",
            ".sk-folding-cube-animation-name",
            "AKIA",
            "github_pat_",
            "xAKIAIOSFODNN7EXAMPLE",
            "-----BEGIN CERTIFICATE-----\n",
            "x -----BEGIN CERTIFICATE-----\nPRIVATE KEY-----",
        ] {
            assert_eq!(scan.find(text.as_bytes()), None, "{text}");
        }
        assert!(!format!("{scan:?}").contains("canary"));
    }

    #[test]
    fn what_is_not_seen_hides_no_secret_in_a_text() {
        let scan = SecretScan::default();
        let token = format!("ghp_{}", &"aB3".repeat(12));
        for hidden in ["\u{200b}", "\u{1b}[0m", "\u{202e}", "\u{7}"] {
            let text = [&token[..10], &token[10..]].join(hidden);
            assert_eq!(scan.find_in_text(text.as_bytes()), Some("GitHub token"), "{hidden:?}");
            assert_eq!(scan.find(text.as_bytes()), None, "control");
        }
        assert_eq!(scan.find_in_text(format!("{} {}", &token[..10], &token[10..]).as_bytes()), None);
    }
}
