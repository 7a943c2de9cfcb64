//! A payment provider as they are: it remembers `Idempotency-Key` and answers a repeat as it answered the first, it counts
//! what it really did, and it can be down or slow. It knows nothing of workflows. Next: the tests.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::http::{Answer, Request, exchange, read_request};

/// Clones are the same provider.
#[derive(Clone)]
pub struct Provider {
    address: String,
    books: Arc<(Mutex<Books>, Condvar)>,
}

#[derive(Default)]
struct Books {
    /// Key → what was answered.
    answers: BTreeMap<String, Value>,
    /// Each charge that was made, in order: its key and what it was for.
    charges: Vec<(String, Value)>,
    calls: usize,
    is_down: bool,
    /// Charges are made, answers are held back.
    is_slow: bool,
}

impl Provider {
    pub fn start() -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let provider = Provider { address, books: Arc::default() };
        let served = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let provider = served.clone();
                std::thread::spawn(move || provider.serve(stream));
            }
        });
        provider
    }

    pub fn url(&self) -> String {
        format!("http://{}/charges", self.address)
    }

    /// A call as a worker makes it, over the wire. 2xx has the charge's id.
    #[track_caller]
    pub fn charge(&self, key: &str, what: &Value) -> Answer {
        let headers = vec![("idempotency-key".to_owned(), key.to_owned())];
        let body = what.to_string().into_bytes();
        let request = Request { method: "POST".to_owned(), path: "/charges".to_owned(), headers, body };
        exchange(&self.address, &request).expect("the provider answers")
    }

    /// Key → how many charges were made under it.
    pub fn charges(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.lock().charges.iter().for_each(|(key, _)| *counts.entry(key.clone()).or_default() += 1);
        counts
    }

    /// What was charged, in order.
    pub fn charged(&self) -> Vec<Value> {
        self.lock().charges.iter().map(|(_, what)| what.clone()).collect()
    }

    /// How often it was asked, repeats among it.
    pub fn calls(&self) -> usize {
        self.lock().calls
    }

    /// 503, and nothing is charged.
    pub fn is_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    /// It charges at once and says so only when it is no longer slow.
    pub fn is_slow(&self, is_slow: bool) {
        self.lock().is_slow = is_slow;
        self.books.1.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(request) = read_request(&mut stream) else { return };
        let (status, body) = self.answer(&request);
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        // Who asked may be dead by now.
        let _ = stream.write_all((head + &body).as_bytes());
    }

    fn answer(&self, request: &Request) -> (u16, Value) {
        let mut books = self.lock();
        books.calls += 1;
        if books.is_down {
            return (503, json!({"error": "down"}));
        }
        let key = request.header("idempotency-key").unwrap_or_default().to_owned();
        let charged = books.answers.get(&key).cloned().unwrap_or_else(|| {
            let what = serde_json::from_slice(&request.body).unwrap_or_default();
            books.charges.push((key.clone(), what));
            let charged = json!({"charge": format!("ch_{}", books.charges.len())});
            books.answers.insert(key, charged.clone());
            charged
        });
        let quick = self.books.1.wait_while(books, |books| books.is_slow);
        drop(quick);
        (200, charged)
    }
}
