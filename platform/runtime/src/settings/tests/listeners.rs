//! Tests addresses of listeners: an address off the loopback needs what keeps tokens from others.

use super::parse;

/// Returns the errors of `text`, empty if there are none.
fn errors(text: &str) -> String {
    parse(text).map_or_else(|errors| errors.to_string(), |_settings| String::new())
}

#[test]
fn a_plaintext_listener_is_on_the_loopback() {
    for address in ["0.0.0.0:4100", "[::]:4100", "10.0.0.1:4100"] {
        let text = format!("[proxy]\nlisten = '{address}'\n");
        let refused = errors(&text);
        assert!(refused.contains("proxy.listen: "), "{address}: {refused}");
        assert!(refused.contains("listen_plaintext = true"), "{address}: {refused}");
        assert_eq!(errors(&format!("{text}listen_plaintext = true")), "", "control: it is accepted by name");
    }
    for address in ["127.0.0.1:4100", "[::1]:4100"] {
        assert_eq!(errors(&format!("[proxy]\nlisten = '{address}'\n")), "", "control: on the loopback");
    }
    let typed = errors("[proxy]\nlisten_plaintext = 'yes'\n");
    assert!(typed.contains("expected `true` or `false`, found a string"), "{typed}");
}
