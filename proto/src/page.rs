//! The daemon's page in a browser: links to it, and the browsers that are signed in.

use serde::{Deserialize, Serialize};

/// Params of `page.open`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenPage {
    /// The prompt that the page shows first: the `request_id` of an ask or a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
}

/// Answer of `page.open`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpenedPage {
    /// The link, with the code in its fragment, which browsers do not send.
    pub url: String,
    /// The code alone: it signs one browser in, once.
    pub code: String,
    /// Until when the code is valid: RFC 3339, UTC.
    pub expires_at: String,
    /// The address that the daemon listens on for the page.
    pub address: String,
    /// Only this machine reaches the address.
    pub loopback: bool,
    /// The page is served with TLS.
    pub tls: bool,
}

/// Answer of `page.sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSessionList {
    /// Those that signed in last come last.
    pub sessions: Vec<PageSession>,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSession {
    /// Its number, for `page.revoke`.
    pub id: u64,
    /// The address that it signed in from.
    pub from: String,
    /// As the browser names itself.
    pub browser: String,
    /// RFC 3339, UTC.
    pub signed_in_at: String,
    /// RFC 3339, UTC.
    pub last_used_at: String,
    /// Its open connections.
    pub connections: u64,
}

/// Params of `page.revoke`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokePageSessions {
    /// Ends only this one; all when absent, and then unused links are void, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

/// Answer of `page.revoke`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokedPageSessions {
    /// How many browsers were signed out.
    pub revoked: u64,
}
