//! Values of other crates that live as long as their owner, one of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value of each type.
#[derive(Default)]
pub(crate) struct Slots(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Slots {
    /// The value of this type; created on first use.
    pub(crate) fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut slots = self.0.lock();
        let slot = slots.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        slot.downcast().expect("a slot holds the type that it is keyed by")
    }

    /// The same, if it is there.
    pub(crate) fn get_if_any<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let slot = self.0.lock().get(&TypeId::of::<T>())?.clone();
        Some(slot.downcast().expect("a slot holds the type that it is keyed by"))
    }
}
