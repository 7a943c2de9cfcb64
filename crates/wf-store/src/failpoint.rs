//! Named places at which a test lets the process die as if it were killed: `WF_FAILPOINT="name[:n]"`, at the n-th hit.
//! It costs one relaxed load where the variable is not set. It knows none of the places.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Dies here when this is the place and the hit that the environment names.
pub fn hit(name: &'static str) {
    if STATE.load(Ordering::Relaxed) != OFF {
        hit_slowly(name);
    }
}

const UNREAD: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNREAD);

struct Armed {
    name: String,
    hits_left: AtomicU64,
}

fn hit_slowly(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| std::env::var("WF_FAILPOINT").ok().and_then(|text| parse(&text)));
    STATE.store(if armed.is_some() { ON } else { OFF }, Ordering::Relaxed);
    let Some(armed) = armed.as_ref().filter(|armed| armed.name == name) else { return };
    // No destructor runs, nothing is flushed: what the disk holds now is what the next process finds.
    if armed.hits_left.fetch_sub(1, Ordering::Relaxed) == 1 {
        std::process::abort();
    }
}

/// `name` or `name:n`, n from 1.
fn parse(text: &str) -> Option<Armed> {
    let (name, hits) = match text.split_once(':') {
        Some((name, hits)) => (name, hits.parse().ok()?),
        None => (text, 1),
    };
    (!name.is_empty() && hits > 0).then(|| Armed { name: name.to_owned(), hits_left: AtomicU64::new(hits) })
}

/// Panics here when `WF_PANIC_AT` names this verb: how a test poisons one kind of command.
pub fn panic_at(verb: &str) {
    static VERB: OnceLock<Option<String>> = OnceLock::new();
    if VERB.get_or_init(|| std::env::var("WF_PANIC_AT").ok()).as_deref() == Some(verb) {
        panic!("WF_PANIC_AT={verb}");
    }
}
