//! Takes out of an upstream's error text what tells of its insides: keys, hashes of keys, addresses.
//!
//! Works on words, so that JSON stays JSON. A net with small meshes, not a proof: what an upstream spells out in prose
//! passes.

/// `text` without the words in `known`, and without whatever looks like a key, a hash, an address or a URL.
pub(super) fn scrub(text: &str, known: &[String]) -> String {
    let text = known.iter().fold(text.to_owned(), |text, word| text.replace(word, "[upstream]"));
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|character| !is_word(character)).unwrap_or(rest.len() - start);
        let (before, word) = (&rest[..start], &rest[start..start + length]);
        let bare = word.trim_end_matches(['.', ':', '/', '-']);
        clean.push_str(before);
        clean.push_str(instead(bare).unwrap_or(bare));
        clean.push_str(&word[bare.len()..]);
        rest = &rest[start + length..];
    }
    clean + rest
}

const fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.' | ':' | '/' | '%' | '~' | '*')
}

/// What stands in the place of `word`, if it may not pass.
fn instead(word: &str) -> Option<&'static str> {
    if word.contains("://") {
        Some("[url]")
    } else if word.strip_prefix("sk-").is_some_and(|key| key.len() >= 4) {
        Some("[key]")
    } else if word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Some("[hash]")
    } else if is_address(word) {
        Some("[address]")
    } else {
        None
    }
}

/// `10.0.0.1`, `host/10.0.0.1:80`, `::1`, `fe80::1`, `litellm:4000`, `db.internal:443`
fn is_address(word: &str) -> bool {
    word.split('/').any(is_host)
}

fn is_host(host: &str) -> bool {
    if host.parse::<std::net::IpAddr>().is_ok() || host.parse::<std::net::SocketAddr>().is_ok() {
        return host.contains(|c: char| c.is_ascii_digit());
    }
    let Some((name, port)) = host.rsplit_once(':') else { return false };
    let is_port = (2..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !name.contains(':');
    is_port && is_name && (name.contains('.') || port.len() >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_of_the_upstreams_insides_goes_and_the_rest_stays() {
        let hash = "1a00c3d2".repeat(8);
        let cases = [
            (
                "Budget exceeded! Key=run-r9 (sk-...Mm3g) cost: 6.89e-05",
                "Budget exceeded! Key=run-r9 ([key]) cost: 6.89e-05",
            ),
            ("Received API Key = sk-abcdef123, try again", "Received API Key = [key], try again"),
            (
                &format!("for api_key: {hash}. Limit type: requests"),
                "for api_key: [hash]. Limit type: requests",
            ),
            (
                "cannot connect to host litellm:4000 ssl:default",
                "cannot connect to host [address] ssl:default",
            ),
            ("http://127.0.0.1:18080/v1/chat/completions failed", "[url] failed"),
            ("to localhost/10.0.0.5:4000 or /10.0.0.6:80", "to [address] or [address]"),
            ("from 10.1.2.3:443, then fe80::1.", "from [address], then [address]."),
            ("the key master-secret of gw.internal", "the key [upstream] of [upstream]"),
            // Controls: what an agent needs to read.
            (
                "resets at 2026-11-20 18:32:50 UTC, model gpt-4o-2024-08-06",
                "resets at 2026-11-20 18:32:50 UTC, model gpt-4o-2024-08-06",
            ),
            (
                "{\"error\":{\"code\":\"400\",\"param\":null}}",
                "{\"error\":{\"code\":\"400\",\"param\":null}}",
            ),
            ("messages.0.content: Field required", "messages.0.content: Field required"),
        ];
        for (text, expected) in cases {
            let known = ["master-secret", "gw.internal"].map(str::to_owned);
            assert_eq!(scrub(text, &known), expected);
        }
    }
}
