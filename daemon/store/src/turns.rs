//! A queue for something that one uses at a time: whoever comes first is first. A mutex gives itself back to whoever
//! has just had it, so that one long work in many pieces would keep all others waiting to its end.

use std::sync::{Condvar, Mutex};

use crate::lock;

#[derive(Default)]
pub(crate) struct Turns {
    tickets: Mutex<Tickets>,
    changed: Condvar,
}

#[derive(Default)]
struct Tickets {
    next: u64,
    /// Whose turn it is.
    now: u64,
}

/// Ends when it is dropped.
pub(crate) struct WriteTurn<'t>(&'t Turns);

impl Turns {
    /// Waits for those that came before. Blocks.
    pub(crate) fn wait(&self) -> WriteTurn<'_> {
        let mut tickets = lock(&self.tickets);
        let mine = tickets.next;
        tickets.next += 1;
        let waited = self.changed.wait_while(tickets, |tickets| tickets.now != mine);
        drop(waited.expect("no code panics while it holds this lock"));
        WriteTurn(self)
    }
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        lock(&self.0.tickets).now += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_comes_before_one_who_comes_back() {
        let (turns, order) = (Turns::default(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let first = turns.wait();
            scope.spawn(|| {
                let _turn = turns.wait();
                lock(&order).push("the other");
            });
            while lock(&turns.tickets).next < 2 {
                std::thread::yield_now();
            }
            drop(first);
            let _again = turns.wait();
            lock(&order).push("the first again");
        });
        assert_eq!(*lock(&order), ["the other", "the first again"]);
    }
}
