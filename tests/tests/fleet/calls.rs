//! Calls of tools on other daemons.
