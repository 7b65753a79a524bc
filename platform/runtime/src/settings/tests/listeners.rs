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

const TLS: &str = "tls_certificate = '/c.pem'\ntls_key = '/k.pem'\n";

#[test]
fn an_api_off_the_loopback_has_tls_and_tokens() {
    for address in ["10.0.0.1:4180", "[2001:db8::1]:4180"] {
        let text = format!("[api]\nlisten = '{address}'\n");
        let refused = errors(&text);
        assert!(refused.contains("api.listen: ") && refused.contains("set `tls_certificate`"), "{refused}");
        assert_eq!(errors(&format!("{text}{TLS}")), "", "control: with TLS");
        let refused = errors(&format!("{text}{TLS}anonymous_account = 'local'\n"));
        assert!(refused.contains("api.anonymous_account: "), "{refused}");
    }
    for tls in ["", TLS] {
        let text = format!("[api]\nlisten = '127.0.0.1:4180'\nanonymous_account = 'local'\n{tls}");
        assert_eq!(errors(&text), "", "control: on the loopback");
    }
}

#[test]
fn an_api_on_all_addresses_names_its_hosts() {
    for address in ["0.0.0.0:4180", "[::]:4180"] {
        let text = format!("[api]\nlisten = '{address}'\n{TLS}");
        let refused = errors(&text);
        assert!(refused.contains("api.listen: ") && refused.contains("set `origins`"), "{refused}");
        assert_eq!(errors(&format!("{text}origins = ['https://sluice.example']\n")), "", "control");
    }
}

#[test]
fn a_certificate_and_its_key_go_together() {
    for (setting, lacks) in [("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")] {
        let refused = errors(&format!("[api]\n{setting} = '/x.pem'\n"));
        assert!(refused.contains(&format!("api.{setting}: ")), "{refused}");
        assert!(refused.contains(&format!("set `{lacks}`")), "{refused}");
    }
}

#[test]
fn origins_have_tls_if_the_api_has_it() {
    let text = "[api]\norigins = ['https://a.example', 'http://b.example']\n";
    assert_eq!(errors(text), "", "control: another program may add TLS");
    let refused = errors(&format!("{text}{TLS}"));
    assert!(refused.contains("api.origins: ") && refused.contains("http://b.example"), "{refused}");
    for (value, said) in [("['b.example']", "not an origin"), ("[]", "expected at least 1")] {
        let refused = errors(&format!("[api]\norigins = {value}\n"));
        assert!(refused.contains(said), "{refused}");
    }
}
