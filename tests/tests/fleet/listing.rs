//! The tools of the fleet in every list.
