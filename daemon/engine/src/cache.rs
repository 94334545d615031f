//! Results that may be served again, and calls that wait for an identical one.
//!
//! Looked up after the permission, or one caller could read what another was allowed to compute. The
//! dependencies of a result are in [`crate::dependencies`]; identical calls in flight are in [`flight`].

mod flight;
mod key;
mod lookup;
mod validity;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hashlink::LruCache;
use parking_lot::Mutex;
use toold_proto::cache::CacheStats;
use toold_proto::tool::Block;

use crate::cache::flight::Flights;
pub(crate) use crate::cache::key::CacheKey;
pub(crate) use crate::cache::lookup::{Lookup, LookupRequest, lookup};
use crate::dependencies::{Dependencies, FileChecks};
use crate::tool::{ToolError, ToolOutput};

/// The capacity if the configuration sets none.
pub const DEFAULT_CAPACITY: u64 = 64 * 1024 * 1024;
/// The approximate size of an entry without its texts.
const ENTRY_BYTES: usize = 512;

/// The stored results. Bounded in bytes; the least recently used are evicted first.
pub struct ResultCache {
    kept: Mutex<Kept>,
    flights: Arc<Flights>,
    capacity: u64,
    files: Option<Arc<dyn FileChecks>>,
    counts: CacheCounts,
    /// Grows when the cache is cleared: results of calls that began before are not stored.
    generation: AtomicU64,
}

#[derive(Default)]
struct CacheCounts {
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
    evictions: AtomicU64,
    saved_us: AtomicU64,
}

/// The entries by their last use.
struct Kept {
    entries: LruCache<CacheKey, Entry>,
    /// The sizes of all entries together.
    bytes: u64,
}

struct Entry {
    outcome: Arc<CachedOutcome>,
    bytes: u64,
    stored: Instant,
}

/// The result of a run, and its dependencies.
pub(crate) struct CachedOutcome {
    pub(crate) result: Result<ToolOutput, ToolError>,
    pub(crate) depends: Dependencies,
    /// How many plugins were around the call that ran.
    pub(crate) outer: usize,
    ttl: Duration,
    /// How long the tool ran.
    took: Duration,
}

impl Default for ResultCache {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY, None)
    }
}

impl ResultCache {
    /// At most `capacity` bytes; 0 keeps nothing. Without `files` nothing that was made from files is
    /// served again.
    pub fn new(capacity: u64, files: Option<Arc<dyn FileChecks>>) -> Self {
        let kept = Mutex::new(Kept { entries: LruCache::new_unbounded(), bytes: 0 });
        let counts = CacheCounts::default();
        Self { kept, flights: Arc::default(), capacity, files, counts, generation: AtomicU64::new(0) }
    }

    /// As `cache.stats` shows it.
    pub fn stats(&self) -> CacheStats {
        let (entries, size) = {
            let mut kept = self.kept.lock();
            kept.remove_expired();
            (kept.entries.len() as u64, kept.bytes)
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (hits, misses) = (read(&self.counts.hits), read(&self.counts.misses));
        CacheStats {
            hits,
            misses,
            shared: read(&self.counts.shared),
            evictions: read(&self.counts.evictions),
            entries,
            size,
            capacity: self.capacity,
            saved_ms: read(&self.counts.saved_us) / 1_000,
            hit_rate: if hits + misses == 0 { 0.0 } else { hits as f64 / (hits + misses) as f64 },
        }
    }

    /// Removes every result and returns how many there were. Results of calls that are running now
    /// are not stored either.
    pub fn clear(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::SeqCst);
        let mut kept = self.kept.lock();
        kept.remove_expired();
        let entries = kept.entries.len() as u64;
        kept.entries.clear();
        kept.bytes = 0;
        entries
    }

    /// Checks files on behalf of this cache, if a file checker is set.
    fn files(&self) -> Option<Arc<dyn FileChecks>> {
        self.files.clone()
    }

    fn find(&self, key: &CacheKey) -> Option<Arc<CachedOutcome>> {
        let mut kept = self.kept.lock();
        let entry = kept.entries.get(key)?;
        if entry.is_expired() {
            kept.remove(key);
            return None;
        }
        Some(entry.outcome.clone())
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn count_hit(&self) {
        self.counts.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn count_miss(&self) {
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that got its result from another one in flight.
    fn count_shared(&self) {
        self.counts.shared.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that did not run because of a stored result whose own call took this long.
    fn count_saved(&self, original: Duration) {
        self.counts.saved_us.fetch_add(original.as_micros() as u64, Ordering::Relaxed);
    }

    fn keep(&self, key: CacheKey, outcome: Arc<CachedOutcome>, generation: u64) {
        if !outcome.may_be_kept() {
            return;
        }
        let bytes = (key.bytes() + outcome.bytes() + ENTRY_BYTES) as u64;
        let mut kept = self.kept.lock();
        // Cleared meanwhile: the result may be from before. Compared under the lock that `clear` takes after it counts.
        if bytes > self.capacity || generation != self.generation() {
            return;
        }
        kept.remove(&key);
        kept.entries.insert(key, Entry { outcome, bytes, stored: Instant::now() });
        kept.bytes += bytes;
        while kept.bytes > self.capacity
            && let Some((_, evicted)) = kept.entries.remove_lru()
        {
            kept.bytes -= evicted.bytes;
            if !evicted.is_expired() {
                self.counts.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Kept {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(removed) = self.entries.remove(key) {
            self.bytes -= removed.bytes;
        }
    }

    fn remove_expired(&mut self) {
        let Self { entries, bytes } = self;
        entries.retain(|_, entry| {
            let is_live = !entry.is_expired();
            if !is_live {
                *bytes -= entry.bytes;
            }
            is_live
        });
    }
}

impl Entry {
    /// Each result lives as long as its tool says.
    fn is_expired(&self) -> bool {
        self.stored.elapsed() >= self.outcome.ttl
    }
}

impl CachedOutcome {
    fn may_be_kept(&self) -> bool {
        let good = self.result.as_ref().is_ok_and(|output| !output.is_error);
        good && !self.depends.is_private() && !self.ttl.is_zero()
    }

    fn bytes(&self) -> usize {
        let Ok(output) = &self.result else { return 0 };
        content_bytes(&output.content)
            + json_bytes(&output.metadata)
            + output.structured.as_ref().map_or(0, json_bytes)
            + self.depends.bytes()
    }
}

pub(crate) fn content_bytes(content: &[Block]) -> usize {
    let blocks = content.iter().map(|block| match block {
        Block::Text { text } => text.len(),
        other => json_bytes(other),
    });
    blocks.sum()
}

pub(crate) fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}
