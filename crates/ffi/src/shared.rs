//! The one connection of a program.

use std::sync::{Arc, PoisonError, RwLock};

/// What all calls of a library share between its beginning and its end.
#[derive(Debug)]
pub struct Shared<T>(RwLock<Option<Arc<T>>>);

impl<T> Shared<T> {
    /// Before the beginning.
    #[expect(clippy::new_without_default, reason = "a static is made of it")]
    pub const fn new() -> Shared<T> {
        Shared(RwLock::new(None))
    }

    /// What is there.
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is there, made if nothing is.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn get_or_begin<E>(&self, begin: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match &*shared {
            Some(there) => Ok(there.clone()),
            None => Ok(shared.insert(Arc::new(begin()?)).clone()),
        }
    }

    /// Takes it away.
    pub fn end(&self) -> Option<Arc<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}
