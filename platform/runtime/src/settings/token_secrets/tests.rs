//! Tests token secrets from a file and the environment, and the messages about invalid ones.

use std::{error::Error as _, fs, os::unix::fs::PermissionsExt};

use platform_core::secret::Secret;

use super::{Error, FROM_ENVIRONMENT, MAX_FILE, read};
use crate::trust::Trusted;

/// Text in every secret here; an error that contains it leaks a secret.
const CANARY: &str = "canary";

/// Reads a file with this `text` and `mode`, and returns the ids of its secrets.
fn file(text: &str, mode: u32) -> Result<Vec<String>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secrets");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    read(Some(&path), None, &Trusted::own()).map(|secrets| secrets.ids().map(ToString::to_string).collect())
}

/// Returns everything that `error` could print.
fn printed(error: &Error) -> String {
    format!("{error}: {:?}: {error:?}", error.source().map(ToString::to_string))
}

#[test]
fn a_file_has_one_secret_per_line() {
    let text = "# rotated in November\nnew:canary-0123456789\n\nold:canary: with colons and blanks\r\n";
    for mode in [0o600, 0o640, 0o400] {
        assert_eq!(file(text, mode).unwrap(), ["new", "old"], "{mode:o}");
    }
}

#[test]
fn the_environment_is_asked_only_without_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secrets");
    fs::write(&path, "s1:canary-0123456789").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let environment = Secret::new("canary-of-the-environment".to_owned());
    let ids = |file| -> Vec<_> {
        read(file, Some(&environment), &Trusted::own()).unwrap().ids().map(ToString::to_string).collect()
    };
    assert_eq!(ids(Some(&path)), ["s1"]);
    assert_eq!(ids(None), [FROM_ENVIRONMENT]);
    assert_eq!(read(None, None, &Trusted::own()).unwrap().ids().count(), 0);
}

#[test]
fn a_bad_file_is_refused_without_its_secrets() {
    let good = "s1:canary-0123456789\n";
    let cases: [(String, u32, &str); 13] = [
        (String::new(), 0o600, "holds no secret"),
        ("# only a remark\n".to_owned(), 0o600, "holds no secret"),
        (format!("{good}canary-without-an-id-123\n"), 0o600, "secrets:2: expected `id:secret`"),
        (format!("{good}\n:canary-with-an-empty-id\n"), 0o600, "secrets:3: expected `id:secret`"),
        (format!("{good} s2:canary-after-a-blank\n"), 0o600, "secrets:2: expected `id:secret`"),
        (format!("{good}s2:canary-short\n"), 0o600, "secret s2 is shorter than 16 bytes"),
        (format!("{good}s2: canary-0123456789\n"), 0o600, "secret s2 begins or ends with a blank"),
        (format!("{good}s2:canary-0123456789 \n"), 0o600, "secret s2 begins or ends with a blank"),
        (format!("{good}s1:canary-9876543210\n"), 0o600, "two secrets s1"),
        ((0..9).map(|n| format!("s{n}:canary-0123456789\n")).collect(), 0o600, "9 secrets"),
        (good.repeat(4000), 0o600, "larger than 64 KiB"),
        (good.to_owned(), 0o604, "open to every user"),
        (good.to_owned(), 0o602, "open to every user"),
    ];
    assert!(file(good, 0o600).is_ok());
    for (text, mode, words) in cases {
        let error = printed(&file(&text, mode).unwrap_err());
        assert!(error.contains(words), "{words:?} is not in {error}");
        assert!(!error.contains(CANARY), "a secret is in {error}");
    }
    assert!(good.len() * 4000 > MAX_FILE.as_usize());
}

#[test]
fn what_cannot_be_read_or_used_says_where_it_is() {
    let error = read(Some("/nowhere/secrets".as_ref()), None, &Trusted::own()).unwrap_err();
    assert!(printed(&error).contains("cannot read proxy.token_secrets_file /nowhere/secrets"), "{error}");
    for text in ["canary", "canary-with-a-line-feed\n"] {
        let error = printed(&read(None, Some(&Secret::new(text.to_owned())), &Trusted::own()).unwrap_err());
        assert!(error.contains("PROXY_SHARED_SECRET") && !error.contains(CANARY), "{error}");
    }
}
