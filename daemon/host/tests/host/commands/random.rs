//! Numbers that are the same for the same seed, everywhere, and how many of them a search takes.

/// SplitMix64.
pub(crate) struct SplitMix(u64);

impl SplitMix {
    /// The numbers of one line: lines depend neither on each other nor on the number of threads.
    pub(crate) fn of_line(seed: u64, at: u64) -> Self {
        let mut mixed = Self(seed);
        Self(mixed.next() ^ at.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True in this many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A number from the environment, such as that of lines in a long search.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")),
        Err(_) => usual,
    }
}
