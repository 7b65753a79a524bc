//! seal encrypts the secrets of a connection, and binds them to it: in another row they do not open.
//!
//! AES-256-GCM with a random nonce. The associated data are the installation, the account, the connection, the provider,
//! the scope, the kind and the key's id.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platform_core::{
    connection::{ConnectionId, ConnectionKind},
    id::InstallationId,
};
use platform_runtime::random;
use ring::aead::{Aad, NONCE_LEN, Nonce};
use runner_store::{ConnectionPlace, SealedText, StoredConnection};
use zeroize::Zeroizing;

use crate::{content::SealedContent, error::SealFault, keys::SealingKeys};

/// Beginning of the associated data, which names their form.
const LABEL: &str = "sluicegate connection 1";

/// Connection that secrets are bound to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding<'b> {
    pub(crate) installation: &'b InstallationId,
    pub(crate) id: &'b ConnectionId,
    pub(crate) place: &'b ConnectionPlace,
    pub(crate) kind: &'b ConnectionKind,
}

impl<'b> Binding<'b> {
    pub(crate) const fn of(stored: &'b StoredConnection) -> Self {
        Self { installation: &stored.installation, id: &stored.id, place: &stored.place, kind: &stored.kind }
    }

    /// Returns the associated data: each part after its length, so that no two bindings have the same.
    fn associated_data(&self, key_id: &str) -> Vec<u8> {
        let ConnectionPlace { account, provider, scope } = self.place;
        let kind = serde_json::to_string(self.kind).unwrap_or_default();
        let parts = [
            LABEL,
            self.installation.as_str(),
            account.as_str(),
            self.id.as_str(),
            provider.as_str(),
            scope.as_str(),
            &kind,
            key_id,
        ];
        parts.iter().fold(Vec::new(), |mut data, part| {
            data.extend((part.len() as u64).to_be_bytes());
            data.extend(part.as_bytes());
            data
        })
    }
}

impl SealingKeys {
    /// Seals secrets with the first key.
    pub(crate) fn seal(
        &self,
        binding: Binding<'_>,
        content: &SealedContent,
    ) -> Result<SealedText, SealFault> {
        let key = self.first().ok_or(SealFault::Refused)?;
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(random::bits().to_ne_bytes()).for_each(|(byte, random)| *byte = random);
        let mut sealed = content.to_bytes();
        let data = Aad::from(binding.associated_data(&key.id));
        let tag = key
            .key
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), data, &mut sealed)
            .map_err(|_unspecified| SealFault::Refused)?;
        let whole = [&nonce[..], sealed.as_slice(), tag.as_ref()].concat();
        Ok(SealedText { key_id: key.id.clone(), text: BASE64_STANDARD.encode(whole) })
    }

    /// Opens secrets that are bound to this connection.
    pub(crate) fn open(&self, stored: &StoredConnection) -> Result<SealedContent, SealFault> {
        let SealedText { key_id, text } = &stored.sealed;
        let key = self.get(key_id).ok_or_else(|| SealFault::KeyMissing { key_id: key_id.clone() })?;
        let mut whole = Zeroizing::new(BASE64_STANDARD.decode(text).map_err(|_invalid| SealFault::Altered)?);
        let (nonce, sealed) = whole.split_at_mut_checked(NONCE_LEN).ok_or(SealFault::Altered)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_length| SealFault::Altered)?;
        let data = Aad::from(Binding::of(stored).associated_data(key_id));
        let opened = key.key.open_in_place(nonce, data, sealed).map_err(|_unspecified| SealFault::Altered)?;
        SealedContent::of_bytes(opened).ok_or(SealFault::Altered)
    }

    /// Returns whether the first key seals this connection.
    pub(crate) fn is_current(&self, stored: &StoredConnection) -> bool {
        self.first().is_some_and(|key| key.id == stored.sealed.key_id)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use platform_core::{
        connection::{ConnectionProvider, ConnectionScope, ConnectionState},
        id::AccountId,
        secret::Secret,
    };
    use platform_runtime::settings::KeyFile;
    use runner_store::UnixMillis;

    use super::*;

    const CANARY: &str = "canary-of-a-secret";

    fn keys() -> SealingKeys {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, SealingKeys::generate().expose()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        SealingKeys::read(&KeyFile::Path(path)).unwrap()
    }

    fn connection() -> StoredConnection {
        StoredConnection {
            installation: InstallationId::parse("main").unwrap(),
            id: ConnectionId::from_random(1),
            place: ConnectionPlace {
                account: AccountId::parse("acct-1").unwrap(),
                provider: ConnectionProvider::parse("github").unwrap(),
                scope: ConnectionScope::parse("acme/app").unwrap(),
            },
            kind: ConnectionKind::GitHubApp { app_id: 1, installation_id: 2 },
            state: ConnectionState::Active,
            sealed: SealedText { key_id: String::new(), text: String::new() },
            version: 1,
            expires: None,
            created: UnixMillis(0),
            refreshed: None,
            used: None,
            refresh_until: None,
            read: UnixMillis(0),
        }
    }

    fn content() -> SealedContent {
        SealedContent {
            secret: Secret::new(CANARY.to_owned()),
            access: Some(Secret::new("access\"\n".to_owned())),
        }
    }

    fn sealed(keys: &SealingKeys) -> StoredConnection {
        let bare = connection();
        let sealed = keys.seal(Binding::of(&bare), &content()).unwrap();
        StoredConnection { sealed, ..bare }
    }

    #[test]
    fn what_is_sealed_opens_again() {
        let keys = keys();
        let stored = sealed(&keys);
        let opened = keys.open(&stored).unwrap();
        assert_eq!(opened.secret.expose(), CANARY);
        assert_eq!(opened.access.unwrap().expose(), "access\"\n");
        assert!(!format!("{stored:?}").contains(CANARY));
        assert_ne!(stored.sealed, sealed(&keys).sealed, "each has its own nonce");
    }

    #[test]
    fn a_secret_opens_in_its_own_row_alone() {
        let keys = keys();
        let own = sealed(&keys);
        let account = AccountId::parse("acct-2").unwrap();
        let provider = ConnectionProvider::parse("gitlab").unwrap();
        let scope = ConnectionScope::everything();
        let of = |place| StoredConnection { place, ..own.clone() };
        for other in [
            of(ConnectionPlace { account, ..own.place.clone() }),
            of(ConnectionPlace { provider, ..own.place.clone() }),
            of(ConnectionPlace { scope, ..own.place.clone() }),
            StoredConnection { id: ConnectionId::from_random(2), ..own.clone() },
            StoredConnection { kind: ConnectionKind::Token, ..own.clone() },
            StoredConnection { installation: InstallationId::parse("other").unwrap(), ..own.clone() },
        ] {
            assert!(matches!(keys.open(&other), Err(SealFault::Altered)), "{other:?}");
        }
        assert!(keys.open(&own).is_ok(), "the control");
    }

    #[test]
    fn an_altered_text_does_not_open() {
        let keys = keys();
        let own = sealed(&keys);
        let whole = BASE64_STANDARD.decode(&own.sealed.text).unwrap();
        let with = |bytes: &[u8]| {
            let sealed = SealedText { text: BASE64_STANDARD.encode(bytes), ..own.sealed.clone() };
            keys.open(&StoredConnection { sealed, ..own.clone() })
        };
        for length in 0..whole.len() {
            assert!(matches!(with(&whole[..length]), Err(SealFault::Altered)), "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(matches!(with(&altered), Err(SealFault::Altered)), "byte {at}");
        }
        assert!(with(&whole).is_ok(), "the control");
    }

    #[test]
    fn another_key_is_named() {
        let own = sealed(&keys());
        let fault = keys().open(&own).unwrap_err();
        assert_eq!(fault, SealFault::KeyMissing { key_id: own.sealed.key_id.clone() });
        assert!(fault.to_string().contains("connections.key_file"), "{fault}");
    }
}
