//! Reads what a client says of itself in `connect`.

use std::fmt;

use super::{
    params::{ClosedList, MethodParams},
    refusal::{FrameRefusal, RefusalCause},
    request::ClientRequest,
};

/// Versions of the protocol that are spoken.
const OLDEST_PROTOCOL: u64 = 3;
const NEWEST_PROTOCOL: u64 = 4;

const CONNECT: ClosedList = ClosedList {
    read: &["minProtocol", "maxProtocol", "role", "caps", "auth"],
    ignored: &[
        "client",
        "scopes",
        "device",
        "commands",
        "computerUse",
        "workerRuns",
        "permissions",
        "pathEnv",
        "modelCatalog",
        "locale",
        "userAgent",
    ],
};
const AUTH: ClosedList = ClosedList {
    read: &["token"],
    ignored: &[
        "password",
        "deviceToken",
        "bootstrapToken",
        "approvalRuntimeToken",
        "agentRuntimeIdentityToken",
    ],
};

/// Words of a client about itself.
#[derive(Clone)]
pub struct Introduction {
    /// Version of the protocol that both sides speak.
    pub protocol: u64,
    /// Token by which the client says who it is.
    pub token: Option<String>,
    /// Extensions that the client takes.
    pub caps: Vec<String>,
}

impl fmt::Debug for Introduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, caps, .. } = self;
        f.debug_struct("Introduction").field("protocol", protocol).field("caps", caps).finish_non_exhaustive()
    }
}

impl Introduction {
    /// Reads the parameters of `connect`.
    ///
    /// # Errors
    /// If they have no version of the protocol in common, the client has another role, or a parameter is unknown.
    pub fn read(request: &ClientRequest) -> Result<Self, FrameRefusal> {
        let params = MethodParams::of_part("connect params", request.params.as_ref(), CONNECT)?;
        let least: u64 = params.required("minProtocol")?;
        let most: u64 = params.required("maxProtocol")?;
        let protocol = most.min(NEWEST_PROTOCOL);
        if protocol < OLDEST_PROTOCOL || protocol < least {
            return Err(RefusalCause::Protocol.with(format!(
                "protocol mismatch: the client speaks {least} to {most}, and this gateway {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL}"
            )));
        }
        let role: Option<String> = params.optional("role")?;
        if role.is_some_and(|role| role != "operator") {
            return Err(params.refuse("at /role: only \"operator\" connects here"));
        }
        let auth = MethodParams::of_part("connect params: /auth", params.part("auth"), AUTH)?;
        let token = auth.optional("token")?;
        // Extensions that cannot be read are none.
        let caps = params.optional("caps").ok().flatten().unwrap_or_default();
        Ok(Self { protocol, token, caps })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn connect(params: &Value) -> Result<Introduction, RefusalCause> {
        let frame = json!({ "type": "req", "id": "1", "method": "connect", "params": params });
        let request = ClientRequest::read(&frame.to_string()).unwrap();
        Introduction::read(&request).map_err(|refusal| refusal.cause)
    }

    #[test]
    fn a_protocol_of_both_is_spoken() {
        for (least, most, spoken) in [(3, 3, 3), (3, 4, 4), (4, 4, 4), (1, 99, 4)] {
            let params = json!({ "minProtocol": least, "maxProtocol": most, "auth": { "token": "t" } });
            let found = connect(&params).unwrap_or_else(|refused| panic!("{refused:?}"));
            assert_eq!((found.protocol, found.token.as_deref()), (spoken, Some("t")), "{least} to {most}");
        }
        for (least, most) in [(1, 2), (5, 9), (4, 3)] {
            let refused = connect(&json!({ "minProtocol": least, "maxProtocol": most })).err().unwrap();
            assert_eq!(refused, RefusalCause::Protocol, "{least} to {most}");
        }
    }

    #[test]
    fn a_device_is_ignored_and_a_node_refused() {
        let with = |name: &str, value: Value| {
            let mut params = json!({ "minProtocol": 3, "maxProtocol": 4 });
            params[name] = value;
            connect(&params).map(|_| ()).err()
        };
        assert_eq!(with("device", json!({ "id": "x" })), None);
        assert_eq!(with("role", json!("operator")), None);
        for (name, value) in
            [("role", json!("node")), ("outbound", json!(1)), ("auth", json!({ "user": "x" }))]
        {
            assert_eq!(with(name, value), Some(RefusalCause::Params), "{name}");
        }
    }
}
