//! Named places at which a test lets the process die as if it were killed: `WF_FAILPOINT="name[:n]"`, at the n-th hit;
//! `"name:+n"` counts from where the process is ready, since what a start hits differs between two starts.
//! It costs one relaxed load where the variable is not set. Each place says what a death there means; the crash matrix
//! of `tests/e2e` dies at all of them, and fails where the code hits a name that is not listed, or does not hit one that is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

pub struct Place {
    pub name: &'static str,
    /// What a death there leaves, and what has to come of it.
    pub meaning: &'static str,
}

const fn place(name: &'static str, meaning: &'static str) -> Place {
    Place { name, meaning }
}

/// In the order in which a process passes them: its start, a turn, the engine's upkeep, the shipper, its end.
pub const PLACES: &[Place] = &[
    place("after-lock", "the folder is locked, the database not opened: the lock ends with the process"),
    place(
        "in-migration",
        "tables are made, the schema's version is not: none of it stands, the next start begins again",
    ),
    place("after-migration", "an empty store without a partition, or an old one that nobody has taken yet"),
    place("after-take", "the epoch is raised and its first command is not durable: the next start raises it once more"),
    place("after-epoch", "the epoch's first command is durable and nobody was told: an epoch without work"),
    place("before-ready", "everything runs, also the shipper, and nobody knows the address"),
    place("before-turn", "decided in memory, nothing sent to the disk: the turn never was"),
    place("in-turn", "a part of the transaction is written: none of it stands"),
    place("before-commit", "all is written and not committed: none of it stands"),
    place(
        "after-commit",
        "committed, and the engine does not know: all of it stands, the repeat gets the stored answer",
    ),
    place("before-answer", "committed and known, no answer has left: as after-commit"),
    place("after-answer", "answers are on their way: who got none repeats"),
    place("before-replay", "a stored answer was found and does not get out: the next repeat gets it"),
    place(
        "after-lead",
        "a request of several partitions has its record, none of its parts is sent: a repeat sends them",
    ),
    place("before-finish", "all parts are done, the record is not finished: a repeat finds each part's answer"),
    place("in-sweep", "expired records are deleted, older counts and messages are not: none of it stands"),
    place("before-checkpoint", "committed pages stand in the log alone: the next start reads them there"),
    place(
        "in-checkpoint",
        "pages are copied into the database, the log still holds them: reading them twice changes nothing",
    ),
    place("after-checkpoint", "the log begins anew over a database that has everything"),
    place("after-claim", "messages are claimed and not sent: the next start lets go of the claims"),
    place("after-ship", "the receiver has acknowledged and no mark is written: the same id is sent again"),
    place("before-mark", "as after-ship, the mark is on its way: it stands or not, and the id is the same"),
    place("after-mark", "marked and not counted: nothing is sent again"),
    place("after-stop", "a stop was asked for, requests are finished, the shipper still runs"),
    place("before-close", "all is done but emptying the log into the database"),
];

/// Dies here when this is the place and the hit that the environment names.
pub fn hit(name: &'static str) {
    if STATE.load(Ordering::Relaxed) != OFF {
        hit_slowly(name);
    }
}

const READY: &str = "before-ready";

const UNREAD: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNREAD);

struct Armed {
    name: String,
    hits_left: AtomicU64,
    counts: AtomicBool,
}

fn hit_slowly(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| std::env::var("WF_FAILPOINT").ok().and_then(|text| parse(&text)));
    STATE.store(if armed.is_some() { ON } else { OFF }, Ordering::Relaxed);
    let Some(armed) = armed else { return };
    if name == READY {
        armed.counts.store(true, Ordering::Relaxed);
    }
    if armed.name != name || !armed.counts.load(Ordering::Relaxed) {
        return;
    }
    // No destructor runs, nothing is flushed: what the disk holds now is what the next process finds.
    if armed.hits_left.fetch_sub(1, Ordering::Relaxed) == 1 {
        std::process::abort();
    }
}

/// `name`, `name:n` or `name:+n`, n from 1.
fn parse(text: &str) -> Option<Armed> {
    let (name, hits) = text.split_once(':').unwrap_or((text, "1"));
    let from_ready = hits.strip_prefix('+');
    let hits_left = from_ready.unwrap_or(hits).parse().ok().filter(|hits| *hits > 0)?;
    let counts = AtomicBool::new(from_ready.is_none());
    (!name.is_empty()).then(|| Armed { name: name.to_owned(), hits_left: AtomicU64::new(hits_left), counts })
}

/// Panics here when `WF_PANIC_AT` names this verb: how a test poisons one kind of command.
pub fn panic_at(verb: &str) {
    static VERB: OnceLock<Option<String>> = OnceLock::new();
    if VERB.get_or_init(|| std::env::var("WF_PANIC_AT").ok()).as_deref() == Some(verb) {
        panic!("WF_PANIC_AT={verb}");
    }
}
