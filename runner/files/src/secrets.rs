//! Knows names and beginnings of files that usually hold secrets, which a run receives only if its user says so.

use std::ffi::OsStr;

use super::file_name::folded_name;

/// Beginnings of names.
const BEGINNINGS: [&str; 10] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "service-account",
    "service_account",
    "client_secret",
    "kubeconfig",
    "application_default_credentials",
];
/// Endings of names.
const ENDINGS: [&str; 16] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".ppk",
    ".kdbx",
    ".kdb",
    ".tfstate",
    ".tfvars",
    ".ovpn",
    ".p8",
    ".der",
    ".tfvars.json",
    ".kubeconfig",
];
/// Whole names, of files and of directories.
const NAMES: [&str; 27] = [
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".dockercfg",
    ".vault-token",
    ".terraformrc",
    ".boto",
    ".s3cfg",
    ".credentials.json",
    "auth.json",
    ".vault_pass",
    ".vault_pass.txt",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".gcloud",
    ".password-store",
    "secring.gpg",
];
/// Endings of names that show an example or a public half.
const HARMLESS_ENDINGS: [&str; 7] =
    [".example", ".sample", ".template", ".dist", ".pub", ".example.json", ".md"];
/// Endings of the only files that are judged by some beginnings: `credentials.rs` is source code.
const DATA_ENDINGS: [&str; 10] =
    ["", ".json", ".yml", ".yaml", ".toml", ".ini", ".txt", ".xml", ".csv", ".properties"];

/// Endings that editors and people give to copies of a file.
const BACKUP_ENDINGS: [&str; 8] = ["~", ".bak", ".old", ".orig", ".backup", ".save", ".copy", ".swp"];
/// The only names with the beginning [`ENVIRONMENT`] that hold no values.
const HARMLESS_ENVIRONMENTS: [&str; 5] =
    [".env.example", ".env.sample", ".env.template", ".envoy.yaml", ".envoy.yml"];
/// Beginning of the names of files with variables for programs, many of them secret.
const ENVIRONMENT: &str = ".env";
/// Beginning and end of the line before a private key in the form of RFC 7468.
const KEY_MARKS: [&str; 2] = ["-----BEGIN ", "PRIVATE KEY"];
/// Bytes at the beginning of a file in which that line is looked for.
pub(crate) const KEY_CHECK_LEN: usize = 1024;

/// Returns whether a file or directory called `name` may hold secrets. Case does not matter.
pub(crate) fn may_hold_secrets(name: &OsStr) -> bool {
    let name = folded_name(&name.to_string_lossy());
    let name = without_backup_endings(&name);
    if name.starts_with(ENVIRONMENT) {
        return !HARMLESS_ENVIRONMENTS.contains(&name);
    }
    if HARMLESS_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    let begins = BEGINNINGS.iter().any(|beginning| {
        let rest = name.strip_prefix(beginning);
        rest.is_some_and(|rest| {
            DATA_ENDINGS.contains(&rest) || (rest.starts_with(['-', '_']) && is_data(rest))
        })
    });
    begins || ENDINGS.iter().any(|ending| name.ends_with(ending)) || NAMES.contains(&name)
}

/// Returns whether a file that begins with `content` holds a private key.
#[must_use]
pub fn begins_with_key(content: &[u8]) -> bool {
    let [begin, end] = KEY_MARKS.map(str::as_bytes);
    let is_mark = |line: &[u8]| {
        line.strip_prefix(begin).is_some_and(|rest| rest.windows(end.len()).any(|part| part == end))
    };
    content.split(|byte| *byte == b'\n').any(is_mark)
}

/// Returns `name` without what marks a copy: `server.key.bak.2` is a key.
fn without_backup_endings(mut name: &str) -> &str {
    loop {
        let stripped = BACKUP_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        let stripped = stripped.or_else(|| {
            let (above, number) = name.rsplit_once('.')?;
            (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(above)
        });
        match stripped.filter(|stripped| !stripped.is_empty()) {
            Some(stripped) => name = stripped,
            None => return name,
        }
    }
}

fn is_data(name: &str) -> bool {
    let ending = name.find('.').map_or("", |at| &name[at..]);
    DATA_ENDINGS.contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            ".env",
            ".env.local",
            ".env-prod",
            ".envrc",
            ".ENV",
            "server.pem",
            "tls.key",
            "a.p12",
            "a.pfx",
            "a.jks",
            "id_rsa",
            "id_ed25519",
            "id_ed25519_work",
            "id_ecdsa",
            "id_dsa",
            ".npmrc",
            ".pypirc",
            ".netrc",
            ".git-credentials",
            ".htpasswd",
            "db.kdbx",
            "credentials",
            "credentials.json",
            "service-account.json",
            "service-account-prod.json",
            ".ssh",
            ".aws",
            ".gnupg",
            ".kube",
            ".docker",
        ] {
            assert!(may_hold_secrets(OsStr::new(name)), "{name}");
        }
        for name in [
            ".env.example",
            ".env.sample",
            ".env.template",
            "id_rsa.pub",
            ".envoy.yaml",
            "environment.ts",
            "credentials.rs",
            "credentials_test.go",
            "keys.rs",
            "monkey",
            "service-accounts.md",
            "main.rs",
            ".gitignore",
            "notes.1",
            "main.rs.orig",
            "kubeconfig.go",
        ] {
            assert!(!may_hold_secrets(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn copies_of_secrets_are_known() {
        for name in [
            ".env2",
            ".envprod",
            ".env.md",
            ".env.dist",
            ".env~",
            ".env.bak",
            "server.key.old",
            "tls.pem.orig.2",
            "terraform.tfstate.backup",
            "terraform.tfstate.1700000000",
            "prod.auto.tfvars.json",
            ".credentials.json",
            "auth.json",
            "application_default_credentials.json",
            "kubeconfig-prod",
            "prod.kubeconfig",
            "AuthKey_1.p8",
            "x.der",
            ".vault_pass",
        ] {
            assert!(may_hold_secrets(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn private_keys_are_known_by_their_content() {
        for content in [
            "-----BEGIN PRIVATE KEY-----\nMII",
            "-----BEGIN OPENSSH PRIVATE KEY-----\n",
            "Bag Attributes\n-----BEGIN RSA PRIVATE KEY-----\n",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        ] {
            assert!(begins_with_key(content.as_bytes()), "{content}");
        }
        for content in
            ["-----BEGIN CERTIFICATE-----\n", "let mark = \"-----BEGIN PRIVATE KEY-----\";", "PRIVATE KEY"]
        {
            assert!(!begins_with_key(content.as_bytes()), "{content}");
        }
    }
}
