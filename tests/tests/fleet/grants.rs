//! Grants and revocations that are valid in the whole fleet.
