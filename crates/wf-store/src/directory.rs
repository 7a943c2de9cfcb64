//! Where tenants live, where several stores share them. Next: `store.rs`.

use crate::{Later, StoreError};

/// Each tenant is whole in one of several stores, and stays there.
pub trait Directory: Send + Sync {
    /// The number of its store, from 0. `None`: it has no home yet, so that nobody has worked for it. `settles`: it gets
    /// one.
    fn home<'a>(&'a self, tenant: &'a str, settles: bool) -> Later<'a, Result<Option<usize>, StoreError>>;
}
