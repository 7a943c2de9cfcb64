//! A loss of power without a machine that loses power. `layer/` is preloaded into the program under test and writes down
//! what it asks of its files; afterwards `lose` makes of that what a disk may hold. Nothing here knows SQLite.
//!
//! The model. A file's bytes are safe once `fsync` or `fdatasync` of that file has returned; a name (made, removed, moved)
//! is safe once its folder was synced. Of what came later anything may have arrived, and each sector of 512 bytes for itself:
//! the page cache is written back whenever the system likes, so a sector holds what any of the later writes left there,
//! whatever its neighbours hold. A write can so be torn, be overtaken by a later one, or be missing in the middle.
//! A file may be as long as it was at any time since its last sync; what it never got reads as zeros.
//!
//! Not in the model: a disk that confirms and forgets, sectors that go bad, a sector that is written half, what is only
//! memory between processes (`-shm`: it comes back as noise or not at all). Next: `journal.rs`, then `lose.rs`.

pub mod journal;
pub mod lose;

/// What `layer/` reads from the environment: the folder that it watches, by its real path.
pub const ROOT: &str = "POWERLOSS_ROOT";
/// The file that the journal is written to, outside that folder.
pub const JOURNAL: &str = "POWERLOSS_JOURNAL";
/// The program ends, as by a kill, when it is about to write down so many: between any two writes, and before a sync.
pub const RECORDS_MAX: &str = "POWERLOSS_RECORDS_MAX";
/// Set: syncs succeed and are written down nowhere, as on a disk that lies.
pub const LIES: &str = "POWERLOSS_LIES";
