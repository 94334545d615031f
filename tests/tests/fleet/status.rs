//! The status of the fleet, and its configuration.
