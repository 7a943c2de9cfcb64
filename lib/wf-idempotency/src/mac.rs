//! HMAC-SHA256 over parts whose borders cannot be confused.
//! Does not know what the parts mean: `fingerprint` and `key` do.

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;

#[derive(Clone)]
pub(crate) struct Mac(Hmac<Sha256>);

impl Mac {
    /// Starts a MAC whose first part is `domain`, so that two uses of one secret never agree by accident.
    pub(crate) fn new(secret: &[u8; 32], domain: &str) -> Mac {
        // HMAC fills a short key up with zeros to the block; done here, the constructor cannot fail.
        let mut block = [0; 64];
        block[..32].copy_from_slice(secret);
        let mut mac = Mac(Hmac::new(&block.into()));
        mac.part(domain.as_bytes());
        mac
    }

    /// Adds one part behind its length: ("ab", "c") and ("a", "bc") differ.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    /// Adds a number: how many parts follow, or which kind.
    pub(crate) fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }
}
