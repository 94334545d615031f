//! Why messages are refused.

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRefusal {
    /// It is not a signed message.
    Malformed,
    /// Nobody of this name is in `[fleet]`.
    UnknownSender,
    /// The signature does not fit the text.
    BadSignature,
    /// It is for another purpose or another receiver.
    Misdirected,
    /// Its time is over, or the clocks differ.
    Expired,
    /// It was received before, or is older than what was received.
    Replayed,
    /// The sender may not do this here.
    NotPermitted,
}

impl MessageRefusal {
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::UnknownSender,
        Self::BadSignature,
        Self::Misdirected,
        Self::Expired,
        Self::Replayed,
        Self::NotPermitted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownSender => "unknown_sender",
            Self::BadSignature => "bad_signature",
            Self::Misdirected => "misdirected",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::NotPermitted => "not_permitted",
        }
    }
}
