//! Reads networks of IP addresses, such as `10.0.0.0/8`.

use std::{fmt, net::IpAddr, str::FromStr};

use platform_core::invalid::InvalidValue;
use serde_json::json;

use crate::config::Value;

/// Network of IP addresses: those that begin with the same bits. An IPv4 address in IPv6 form counts as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpNetwork {
    /// Its first address.
    first: IpAddr,
    /// Bits that its addresses have in common.
    prefix: u8,
}

/// Error for a text that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// The text is something else.
    #[error("not an address or network: expected one such as `10.0.0.7` or `10.0.0.0/8`, found `{0}`")]
    Form(String),
    /// The address lies within the network instead of at its beginning.
    #[error("`{found}` has bits behind its prefix: write `{network}` for the network, or the address alone")]
    HostBits {
        /// The text.
        found: String,
        /// Network in which the address lies.
        network: IpNetwork,
    },
}

impl IpNetwork {
    /// Returns the network of `address` with these first bits in common. A longer prefix than the address is the
    /// address itself.
    #[must_use]
    pub fn around(address: IpAddr, prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let prefix = prefix.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Self { first: IpAddr::V4((address.to_bits() & mask).into()), prefix }
            }
            IpAddr::V6(address) => {
                let prefix = prefix.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self { first: IpAddr::V6((address.to_bits() & mask).into()), prefix }
            }
        }
    }

    /// Returns whether `address` is one of it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && Self::around(address, self.prefix) == self
    }
}

impl FromStr for IpNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let invalid = || InvalidNetwork::Form(text.to_owned());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_no_address| invalid())?;
        let address = address.to_canonical();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_no_number| invalid())?
            }
            Some(_) => return Err(invalid()),
        };
        if !(1..=most).contains(&prefix) {
            return Err(invalid());
        }
        let network = Self::around(address, prefix);
        if network.first == address {
            Ok(network)
        } else {
            Err(InvalidNetwork::HostBits { found: text.to_owned(), network })
        }
    }
}

impl Value for IpNetwork {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(InvalidValue::of)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F.:]+(/[0-9]+)?$" })
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.to_string())
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_address = self.prefix == if self.first.is_ipv4() { 32 } else { 128 };
        if is_address { write!(f, "{}", self.first) } else { write!(f, "{}/{}", self.first, self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("128.0.0.0/1", "200.0.0.1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("8000::/1", "200.0.0.1", false),
            ("::1", "::1", true),
        ] {
            let network: IpNetwork = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network} {address}");
        }
    }

    #[test]
    fn a_network_is_shown_as_it_is_written() {
        for text in ["10.0.0.0/8", "10.0.0.7", "fd00::/8", "::1"] {
            assert_eq!(text.parse::<IpNetwork>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.7/32".parse::<IpNetwork>().unwrap().to_string(), "10.0.0.7");
        assert_eq!(
            IpNetwork::around("2001:db8:1:2:3::4".parse().unwrap(), 64).to_string(),
            "2001:db8:1:2::/64"
        );
    }

    #[test]
    fn other_texts_are_no_networks() {
        for text in [
            "",
            "*",
            "proxy.example",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "0.0.0.0/0",
            "::/0",
            "::/129",
        ] {
            assert!(matches!(text.parse::<IpNetwork>(), Err(InvalidNetwork::Form(_))), "{text}");
        }
        let error = "10.0.0.7/8".parse::<IpNetwork>().unwrap_err().to_string();
        assert!(error.contains("write `10.0.0.0/8`"), "{error}");
    }
}
