//! Tests tokens against the published vectors, damaged tokens, and secrets that are refused.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;

use super::*;

const VECTORS: &str = include_str!("../../tests/vectors/run-token.json");
const NOW: UnixSeconds = UnixSeconds(1_795_500_000);

fn secret(id: &str, text: &str) -> NamedSecret {
    NamedSecret::new(SecretId::parse(id).unwrap(), &Secret::new(text.to_owned())).unwrap()
}

fn one_secret() -> Secrets {
    Secrets::new(vec![secret("s", "0123456789abcdef")]).unwrap()
}

fn mint(run: &str, attempt: u32, expiry: UnixSeconds, secrets: &Secrets) -> String {
    let token = RunToken { run_id: RunId::parse(run).unwrap(), attempt, expiry };
    token.mint(secrets.minting().unwrap()).expose().to_owned()
}

fn check<'t, 's>(text: &'t str, secrets: &'s Secrets) -> Result<Verified<'t, 's>, TokenError> {
    SignedToken::parse(text)?.verify(secrets, NOW, Duration::ZERO)
}

/// Returns the outcome in the words of the vectors.
fn outcome(case: &Value, secrets: &Secrets) -> Value {
    let now = UnixSeconds(case["now"].as_u64().unwrap());
    let skew = Duration::from_secs(case["skew_seconds"].as_u64().unwrap());
    let verified = SignedToken::parse(case["token"].as_str().unwrap())
        .map_err(TokenError::from)
        .and_then(|token| token.verify(secrets, now, skew));
    match verified {
        Ok(verified) => serde_json::json!({ "verified": {
            "run": verified.claims().run(),
            "attempt": verified.claims().attempt(),
            "expiry": verified.claims().expiry().0,
            "secret": verified.secret(),
        }}),
        Err(failure) => serde_json::json!({ "failure": failure.code() }),
    }
}

#[test]
fn the_published_vectors_hold() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let ids = case["secrets"].as_array().unwrap().iter().map(|id| id.as_str().unwrap());
        let secrets: Vec<_> = ids.map(|id| secret(id, vectors["secrets"][id].as_str().unwrap())).collect();
        let found = outcome(case, &Secrets::new(secrets).unwrap());
        for (key, value) in found.as_object().unwrap() {
            assert_eq!(Some(value), case.get(key), "{case}");
        }
        // A token that Node wrote must equal ours byte for byte.
        if let Some(good) = case.get("verified") {
            let id = good["secret"].as_str().unwrap();
            let signer = Secrets::new(vec![secret(id, vectors["secrets"][id].as_str().unwrap())]).unwrap();
            let attempt = u32::try_from(good["attempt"].as_u64().unwrap()).unwrap();
            let expiry = UnixSeconds(good["expiry"].as_u64().unwrap());
            assert_eq!(case["token"], mint(good["run"].as_str().unwrap(), attempt, expiry, &signer));
        }
    }
    let count = |key: &str| cases.iter().filter(|case| case.get(key).is_some()).count();
    assert!(count("verified") >= 8 && count("failure") >= 40, "the vectors were read");
    assert_eq!(count("verified") + count("failure"), cases.len());
}

#[test]
fn no_token_is_too_long() {
    let secrets = one_secret();
    let longest = mint(&"a".repeat(63), u32::MAX, UnixSeconds(u64::MAX), &secrets);
    assert_eq!(longest.len(), MAX_LENGTH);
    let parsed = SignedToken::parse(&longest).unwrap();
    assert!(
        parsed.verify(&secrets, NOW, Duration::from_secs(1)).is_ok(),
        "its expiry and the skew do not overflow"
    );
    assert_eq!(check(&format!("{longest}A"), &secrets), Err(Malformed::TooLong.into()));
}

#[test]
fn what_is_malformed_names_its_part() {
    let secrets = one_secret();
    let good = mint("r1", 0, NOW, &secrets);
    assert!(check(&good, &secrets).is_ok());
    let (data, signature) = good.rsplit_once('.').unwrap();
    let cases = [
        (data.to_owned(), Malformed::Parts),
        (format!("{data}|.{signature}"), Malformed::Parts),
        (format!("_{good}"), Malformed::Run),
        (good.replace("|0|", "|+0|"), Malformed::Attempt),
        (good.replace("|0|", "|0.5|"), Malformed::Attempt),
        (good.replace("|0|", "|0|-"), Malformed::Expiry),
        (format!("{data}.{}=", &signature[..42]), Malformed::Signature),
        (format!("{good}A"), Malformed::Signature),
    ];
    for (text, part) in cases {
        assert_eq!(check(&text, &secrets), Err(part.into()), "{text:?}");
    }
}

#[test]
fn any_secret_verifies_and_the_first_one_mints() {
    let of = |names: &[(&str, &str)]| {
        Secrets::new(names.iter().map(|(id, text)| secret(id, text)).collect()).unwrap()
    };
    let old = ("old", "an old secret of ours");
    let new = ("new", "a new secret of ours");
    let before = mint("r1", 0, NOW, &of(&[old]));
    let signer = |token: &str, secrets: &Secrets| check(token, secrets).map(|found| found.secret().clone());
    let id = |text| SecretId::parse(text).unwrap();
    // The new secret is added, then put first, then used alone: no step refuses a token that is still in use.
    for (in_use, old_ok, mints) in
        [(of(&[old, new]), true, "old"), (of(&[new, old]), true, "new"), (of(&[new]), false, "new")]
    {
        let fresh = mint("r1", 0, NOW, &in_use);
        assert_eq!(signer(&fresh, &in_use), Ok(id(mints)));
        let expected = if old_ok { Ok(id("old")) } else { Err(TokenError::Invalid) };
        assert_eq!(signer(&before, &in_use), expected);
    }
}

#[test]
fn weak_and_ambiguous_secrets_are_refused() {
    let named = |text: &str| NamedSecret::new(SecretId::parse("s").unwrap(), &Secret::new(text.to_owned()));
    assert!(named("0123456789abcdef").is_ok() && named("blanks within are fine").is_ok());
    for text in ["", "0123456789abcde", "sk-canary"] {
        let error = named(text).unwrap_err();
        assert!(matches!(error, Unusable::TooShort(_)), "{text:?}: {error}");
        assert!(!error.to_string().contains("canary"));
    }
    for text in ["0123456789abcdef\n", " 0123456789abcdef", "01234567\t89abcdef", "0123456789abcdef\0"] {
        assert!(matches!(named(text), Err(Unusable::Blanks(_))), "{text:?}");
    }
    let many = |count: usize| {
        Secrets::new((0..count).map(|n| secret(&format!("s{n}"), "0123456789abcdef")).collect())
    };
    assert!(many(MAX_SECRETS).is_ok());
    assert!(matches!(many(MAX_SECRETS + 1), Err(Unusable::TooMany(_))));
    let twins = vec![secret("s", "0123456789abcdef"), secret("s", "fedcba9876543210")];
    assert!(matches!(Secrets::new(twins), Err(Unusable::Twice(_))));
}

#[test]
fn without_a_secret_no_token_is_valid() {
    let none = Secrets::default();
    assert!(none.minting().is_none());
    let token = mint("r1", 0, NOW, &one_secret());
    assert_eq!(check(&token, &none), Err(TokenError::Invalid));
    assert!(check(&token, &one_secret()).is_ok());
}

#[test]
fn debug_output_hides_secrets_and_signatures() {
    let secrets = Secrets::new(vec![secret("s1", "canary-0123456789")]).unwrap();
    let token = mint("r1", 0, NOW, &secrets);
    let signature = token.rsplit_once('.').unwrap().1;
    let parsed = SignedToken::parse(&token).unwrap();
    let shown = format!("{secrets:?} {parsed:?} {:?}", parsed.verify(&secrets, NOW, Duration::ZERO));
    assert!(shown.contains("s1") && shown.contains("r1"), "{shown}");
    assert!(!shown.contains("canary") && !shown.contains(signature) && !shown.contains("tag"), "{shown}");
}

#[test]
fn a_bearer_key_shaped_like_a_token_is_a_token() {
    for key in ["r1|0|1.c2ln", "R1|x|1.", "a|b|c|d.e", "||."] {
        assert!(looks_like_token(key), "{key}");
    }
    for key in
        ["", "sk-1234", "eyJhbGciOi.eyJzdWIi.c2ln", "1|laravel", "auth0|user.name", "a.b|c|d", "r1|0|1"]
    {
        assert!(!looks_like_token(key), "{key}");
    }
}

proptest! {
    #[test]
    fn what_is_minted_verifies_and_says_the_same(run in "[a-z0-9][a-z0-9-]{0,62}", attempt in any::<u32>(), left in any::<u32>()) {
        let secrets = one_secret();
        let expiry = UnixSeconds(NOW.0 + u64::from(left));
        let text = mint(&run, attempt, expiry, &secrets);
        prop_assert!(looks_like_token(&text));
        let claims = check(&text, &secrets).unwrap().claims();
        prop_assert_eq!((claims.run(), claims.attempt(), claims.expiry()), (run.as_str(), attempt, expiry));
    }

    #[test]
    fn a_token_with_any_character_changed_is_refused(at in 0_usize..59, other in "[ -~]") {
        let secrets = one_secret();
        let good = mint("r1", 0, NOW, &secrets);
        prop_assert_eq!((good.len(), check(&good, &secrets).is_ok()), (59, true));
        let mut changed = good.clone();
        changed.replace_range(at..=at, &other);
        prop_assert_eq!(check(&changed, &secrets).is_ok(), changed == good);
    }

    #[test]
    fn no_text_is_a_token_by_accident(text in "\\PC{0,160}", run in "[a-zA-Z0-9|.-]{0,8}") {
        let secrets = one_secret();
        prop_assert!(check(&text, &secrets).is_err());
        let mixed = format!("{run}{}", mint("r1", 0, NOW, &secrets));
        prop_assert_eq!(check(&mixed, &secrets).is_ok(), run.is_empty());
    }
}
