//! Lists the forms in which a secret may be written: as it is, in base64, percent-encoded, escaped as in JSON.

use base64::{
    Engine,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use memchr::memmem;

/// Word in each of the secrets that do not change from test to test.
const WORD: &str = "canary";

/// All forms of one secret, each with its name.
#[derive(Debug)]
pub(super) struct Forms(Vec<(&'static str, Vec<u8>)>);

impl Forms {
    pub(super) fn of(secret: &str) -> Self {
        let mut forms = vec![("as it is", secret.as_bytes().to_vec())];
        for text in base64(secret) {
            forms.push(("in base64", text));
        }
        let escaped = |escape: fn(u8) -> String| {
            let each = secret.bytes().map(|byte| {
                if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { escape(byte) }
            });
            each.collect::<String>().into_bytes()
        };
        for escape in [|byte| format!("%{byte:02X}"), |byte| format!("%{byte:02x}")] {
            forms.push(("percent-encoded", escaped(escape)));
        }
        // Some encoders leave all characters that a URL may contain.
        forms.push(("percent-encoded", secret.replace('|', "%7C").into_bytes()));
        for escape in [|byte| format!("\\u{byte:04x}"), |byte| format!("\\u{byte:04X}")] {
            forms.push(("escaped as in JSON", escaped(escape)));
        }
        forms.dedup();
        Self(forms)
    }

    /// Returns the name of the form in which the secret occurs in `bytes`.
    pub(super) fn in_bytes(&self, bytes: &[u8]) -> Option<String> {
        let (name, form) = self.0.iter().find(|(_, form)| memmem::find(bytes, form).is_some())?;
        Some(format!("{name}, {}", String::from_utf8_lossy(form)))
    }
}

/// Returns whether `bytes` need a full search: every form of a secret that holds the word holds one of these.
pub(super) fn may_hold_a_canary(bytes: &[u8]) -> bool {
    memmem::find(bytes, WORD.as_bytes()).is_some()
        || base64(WORD).iter().any(|form| memmem::find(bytes, form).is_some())
}

/// Returns the parts of the base64 of any text with `secret` in it that depend on the secret alone: for the three
/// offsets in a group of bytes at which it may begin, in both alphabets.
fn base64(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&vec![0; before], secret.as_bytes()].concat();
        for engine in [&BASE64_STANDARD_NO_PAD, &BASE64_URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes);
            forms.push(text.as_bytes()[(before * 8).div_ceil(6)..bytes.len() * 8 / 6].to_vec());
        }
    }
    forms.dedup();
    forms
}
