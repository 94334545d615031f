//! The audit log of all daemons in one stream.
