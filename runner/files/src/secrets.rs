//! Knows the names of files that usually hold secrets, which a run receives only if its user says so.

use std::ffi::OsStr;

/// Beginnings of names.
const BEGINNINGS: [&str; 9] = [
    ".env",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "service-account",
    "service_account",
    "client_secret",
];
/// Endings of names.
const ENDINGS: [&str; 12] = [
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
];
/// Whole names, of files and of directories.
const NAMES: [&str; 24] = [
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
    "kubeconfig",
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

/// Returns whether a file or directory called `name` may hold secrets. Case does not matter.
pub(crate) fn may_hold_secrets(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    if HARMLESS_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    let begins = BEGINNINGS.iter().any(|beginning| {
        name.strip_prefix(beginning).is_some_and(|rest| match *beginning {
            // `.envrc` as well, but not `.environment.ts` or `.envoy.yaml`.
            ".env" => matches!(rest, "" | "rc") || rest.starts_with(['.', '-', '_']),
            _ => DATA_ENDINGS.contains(&rest) || (rest.starts_with(['-', '_']) && is_data(rest)),
        })
    });
    begins || ENDINGS.iter().any(|ending| name.ends_with(ending)) || NAMES.contains(&name.as_str())
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
        ] {
            assert!(!may_hold_secrets(OsStr::new(name)), "{name}");
        }
    }
}
