//! Decides what agents of a gateway may do: what their account wants, as far as the gateway's policy allows. Pure.

use platform_runtime::settings::Gateway;
use runner_model::gateway_agent::{Capabilities, CommandMode, Switch};

use crate::managed;

/// Capabilities that an agent has in fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveCapabilities {
    /// Commands.
    pub commands: Effective<CommandMode>,
    /// Access to the web.
    pub web: Effective<Switch>,
    /// Tools that read and write files.
    pub files: Effective<Switch>,
}

/// Value that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective<T> {
    /// The value.
    pub value: T,
    /// Reason why it is stricter than what is wanted, with the setting to change.
    pub reason: Option<String>,
}

impl<T> Effective<T> {
    /// Returns `wanted`, or `strictest` for the reason `refused`.
    fn of(wanted: T, strictest: T, refused: Option<String>) -> Self
    where
        T: PartialEq,
    {
        match refused {
            Some(reason) if wanted != strictest => Self { value: strictest, reason: Some(reason) },
            _ => Self { value: wanted, reason: None },
        }
    }
}

impl EffectiveCapabilities {
    /// Returns what of `wanted` an agent of `gateway`, named `id`, may do.
    #[must_use]
    pub fn of(id: &str, gateway: &Gateway, wanted: &Capabilities) -> Self {
        let is_shared = gateway.account.is_none();
        let shared = is_shared.then(|| {
            format!(
                "accounts share this gateway, and its agents may not see each other's files: give [gateways.{id}] an `account`"
            )
        });
        let without = |tool: &str| {
            let lacks = gateway.is_managed() && !managed::has_tool(gateway, tool);
            lacks.then(|| format!("`tools` of [gateways.{id}] leaves `{tool}` out"))
        };
        let sealed = gateway.is_managed().then(|| {
            "a gateway that runs here has no network: agents on hosts of their own may reach the web"
                .to_owned()
        });
        let unheard = (wanted.commands == CommandMode::Ask && !gateway.is_managed() && !gateway.approvals)
            .then(|| format!("people are asked there only with `approvals = true` in [gateways.{id}]"));
        let refused = shared.clone().or_else(|| without("exec")).or(unheard);
        Self {
            commands: Effective::of(wanted.commands, CommandMode::Off, refused),
            web: Effective::of(wanted.web, Switch::Off, sealed),
            files: Effective::of(wanted.files, Switch::Off, shared.or_else(|| without("read"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use platform_runtime::{config::Sources, settings::Settings};

    use super::*;

    fn effective(toml: &str, wanted: &Capabilities) -> [(&'static str, bool); 3] {
        let text = format!("[proxy]\nlisten = '127.0.0.1:1'\n[gateways.g]\n{toml}\n");
        let settings =
            Settings::read(&Sources { file: Some(("s.toml".into(), text)), ..Sources::default() }).unwrap();
        let gateway = settings.gateways.into_values().next().unwrap();
        let EffectiveCapabilities { commands, web, files } = EffectiveCapabilities::of("g", &gateway, wanted);
        [
            (commands.value.word(), commands.reason.is_some()),
            (web.value.word(), web.reason.is_some()),
            (files.value.word(), files.reason.is_some()),
        ]
    }

    #[test]
    fn policy_is_stricter_and_says_why() {
        let wanted = Capabilities::default();
        let own = effective("account = 'a'", &wanted);
        assert_eq!(own, [("auto", false), ("off", true), ("on", false)]);
        let shared = effective("", &wanted);
        assert_eq!(shared, [("off", true), ("off", true), ("off", true)]);
        let reading = effective("account = 'a'\ntools = ['read', 'write']", &wanted);
        assert_eq!(reading, [("off", true), ("off", true), ("on", false)]);
        let ask = Capabilities { commands: CommandMode::Ask, ..Capabilities::default() };
        let elsewhere = "url = 'ws://127.0.0.1:2'\ntoken_file = '/t'\naccount = 'a'";
        let there = |more: &str| effective(&format!("{elsewhere}\n{more}"), &ask);
        assert_eq!(there(""), [("off", true), ("on", false), ("on", false)], "no person would be asked");
        assert_eq!(there("approvals = true")[0], ("ask", false));
        let modest = Capabilities { commands: CommandMode::Off, web: Switch::Off, ..wanted };
        let own = effective("", &modest);
        assert_eq!(
            own,
            [("off", false), ("off", false), ("off", true)],
            "what is not wanted needs no reason"
        );
    }
}
