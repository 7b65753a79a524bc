//! Goldens of the codec.
