//! A queue for something that one thread uses at a time: first come, first served. A mutex is not
//! fair: a thread that has just released it often gets it again, so that long work in many pieces
//! would keep all others waiting to its end.

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Turns {
    tickets: Mutex<Tickets>,
    changed: Condvar,
}

#[derive(Default)]
struct Tickets {
    next: u64,
    /// The turn whose holder proceeds.
    now: u64,
}

/// The turn ends when this is dropped.
pub(crate) struct WriteTurn<'t>(&'t Turns);

impl Turns {
    /// Waits for all earlier turns. Blocks.
    pub(crate) fn wait(&self) -> WriteTurn<'_> {
        let mut tickets = self.tickets.lock();
        let mine = tickets.next;
        tickets.next += 1;
        self.changed.wait_while(&mut tickets, |tickets| tickets.now != mine);
        WriteTurn(self)
    }
}

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        self.0.tickets.lock().now += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_thread_comes_before_a_returning_one() {
        let (turns, order) = (Turns::default(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let first = turns.wait();
            scope.spawn(|| {
                let _turn = turns.wait();
                order.lock().push("the other");
            });
            while turns.tickets.lock().next < 2 {
                std::thread::yield_now();
            }
            drop(first);
            let _again = turns.wait();
            order.lock().push("the first again");
        });
        assert_eq!(*order.lock(), ["the other", "the first again"]);
    }
}
