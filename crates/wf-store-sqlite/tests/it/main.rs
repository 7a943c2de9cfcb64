//! The store from outside: the contract's suite, what it does to files and processes, and foreign hands on the database.
//! It knows no engine. Next: `conformance.rs`.

mod conformance;
