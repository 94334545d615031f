//! The cache of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `cache.stats`. Counts are since the daemon's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheStats {
    /// Calls that were given a result that was there.
    pub hits: u64,
    /// Calls of cacheable tools that ran.
    pub misses: u64,
    /// Calls that were given the result of an identical one that was in flight.
    pub shared: u64,
    /// Results that had to go to make room.
    pub evictions: u64,
    /// Results that are there.
    pub entries: u64,
    /// Bytes that they take, about.
    pub size: u64,
    /// Bytes that they may take.
    pub capacity: u64,
    /// Hits in relation to hits and misses; 0 before the first.
    pub hit_rate: f64,
}

/// Answer of `cache.clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCleared {
    /// How many results there were.
    pub cleared: u64,
}
