//! Asks reach the person wherever they sit.
