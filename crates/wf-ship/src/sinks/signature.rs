//! Standard Webhooks signatures, version 1: HMAC-SHA256 over `id.timestamp.body`. Knows no HTTP.
//! Next: `webhook.rs`, which sends them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key's bytes: behind `whsec_` base64, else the text as it is. The error is fit for a list of problems.
pub fn key(secret: &str) -> Result<Vec<u8>, String> {
    let key = match secret.strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| "no base64 behind whsec_".to_owned())?,
        None => secret.as_bytes().to_vec(),
    };
    if key.is_empty() { Err("empty".to_owned()) } else { Ok(key) }
}

/// The value of `webhook-signature`. `timestamp`: seconds since 1970, of this attempt.
pub fn sign(key: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { unreachable!("HMAC takes keys of every length") };
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L5.5: the example that the Standard Webhooks documentation publishes.
    #[test]
    fn signs_as_the_public_example() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_base64_behind_the_prefix_or_raw() {
        assert_eq!(key("whsec_AAEC"), Ok(vec![0, 1, 2]));
        assert_eq!(key("plain"), Ok(b"plain".to_vec()));
        for bad in ["", "whsec_", "whsec_%%%"] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
