//! Ports below those that the system gives to outgoing connections: a server that is started again finds its own free.

use std::net::TcpListener;

pub fn free() -> u16 {
    let candidate = || 15_000 + (crate::client::random() % 15_000) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(candidate).take(1_000).find(is_free).expect("a free port")
}
