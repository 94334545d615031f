//! The result cache.

use serde::{Deserialize, Serialize};

/// Answer of `cache.stats`. Counts are since the daemon's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheStats {
    /// Calls that were answered from the cache.
    pub hits: u64,
    /// Calls of cacheable tools that ran.
    pub misses: u64,
    /// Calls that shared the result of an identical call in flight.
    pub shared: u64,
    /// Results that were evicted to make room.
    pub evictions: u64,
    /// Results in the cache.
    pub entries: u64,
    /// Their approximate size in bytes.
    pub size: u64,
    /// The limit on their size in bytes.
    pub capacity: u64,
    /// Hits divided by hits and misses; 0 before the first call.
    pub hit_rate: f64,
    /// How long the calls took whose results were served from the cache, added up for each time that one was served.
    #[serde(default)]
    pub saved_ms: u64,
}

/// Answer of `cache.clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheCleared {
    /// How many results were removed.
    pub cleared: u64,
}
