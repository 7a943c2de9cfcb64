//! A bad line: bytes go through, until it loses an answer that the other side has already given.
//! It knows no HTTP. Next: the tests.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Proxy {
    /// `HOST:PORT`
    pub address: String,
    lose: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn to(address: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("an address").to_string();
        let proxy = Proxy { address: own, lose: Arc::default(), lost: Arc::default() };
        let (address, lose, lost) = (address.to_owned(), proxy.lose.clone(), proxy.lost.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&address) else { continue };
                let (lose, lost) = (lose.clone(), lost.clone());
                let (from, to) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                std::thread::spawn(move || pass_on(from, to));
                std::thread::spawn(move || answer(server, client, &lose, &lost));
            }
        });
        proxy
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next so many answers reach nobody.
    pub fn lose(&self, answers: usize) {
        self.lose.store(answers, Ordering::SeqCst);
    }

    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// An answer has left the server when its first bytes are here; that it was given is all that counts.
fn answer(mut server: TcpStream, mut client: TcpStream, lose: &AtomicUsize, lost: &AtomicUsize) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(len @ 1..) = server.read(&mut chunk) {
        let is_lost = lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_lost {
            lost.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if client.write_all(&chunk[..len]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
