//! The server from outside: one binary, so that it is linked once.

mod support;

mod doors;
mod bodies;
mod keys;
mod story;
mod documented;
mod sockets;
