//! Somebody else's service: an HTTP server that keeps what it is sent and answers as the test says.
//! Webhooks and workers call it. Next: `http.rs`, which reads their requests.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;

use crate::http::{Request, read_request};
use crate::locked;

#[derive(Clone, Debug)]
pub struct Delivery {
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Debug)]
pub struct Receiver {
    port: u16,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    is_over: Arc<AtomicBool>,
}

impl Receiver {
    /// `status`: what the nth delivery, from 1, is answered with.
    pub fn start(status: impl Fn(usize) -> u16 + Send + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let deliveries = Arc::new(Mutex::new(Vec::new()));
        let kept = deliveries.clone();
        let is_over = Arc::new(AtomicBool::new(false));
        let end = is_over.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(Request { headers, body, .. }) = read_request(&mut &stream) else { continue };
                let count = {
                    let mut kept = locked(&kept);
                    kept.push(Delivery { headers, body });
                    kept.len()
                };
                let answer = format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", status(count));
                // Who asked may be dead by now.
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Receiver { port, deliveries, is_over }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        locked(&self.deliveries).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It looks up.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Delivery {
    /// Empty where absent.
    pub fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, by a key in base64 behind `whsec_`.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("base64");
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).expect("a key");
        mac.update(format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp")).as_bytes());
        mac.update(&self.body);
        self.header("webhook-signature") == format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}
