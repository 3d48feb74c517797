//! Scenarios written by hand.
