//! Provides locks that a panic does not poison.
//!
//! A thread that panics while it holds a lock leaves the value as it is. Every value behind these locks is valid
//! between any two statements, so the next holder can continue. The standard library's locks would panic there, too.

use std::sync::{self, Condvar, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// A mutual exclusion lock, as [`std::sync::Mutex`].
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock and acquires it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock for many readers or one writer, as [`std::sync::RwLock`].
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Waits until no writer has the lock, and acquires it for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the lock is free, and acquires it for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on `changed` while `condition` holds. Releases `guard` during the wait, and acquires it again after each
/// notification.
pub fn wait_while<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    changed.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{panic, sync::Arc, thread};

    use super::*;

    #[test]
    fn a_lock_outlives_the_panic_of_its_holder() {
        let mutex = Arc::new(Mutex::new(1));
        let lock = Arc::new(RwLock::new(1));
        let holders = (Arc::clone(&mutex), Arc::clone(&lock));
        let holder = thread::spawn(move || {
            let mut value = holders.0.lock();
            *value = 2;
            *holders.1.write() = 2;
            panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(holder.join().is_err());
        assert_eq!((*mutex.lock(), *lock.read()), (2, 2));
    }
}
