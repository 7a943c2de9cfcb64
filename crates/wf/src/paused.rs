//! A sink that cannot be used while a file stands in the data folder: after a restore the operator looks first.
//! It knows no reason; `wf restore` makes the file, whoever removes it lets shipping begin.
//! Next: back to `node.rs`.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wf_ship::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo};
use wf_store_sqlite::PAUSED_FILE;

pub struct Pausable {
    sink: Arc<dyn Sink>,
    marker: PathBuf,
}

impl Pausable {
    pub fn new(sink: Arc<dyn Sink>, data: &Path) -> Pausable {
        Pausable { sink, marker: data.join(PAUSED_FILE) }
    }
}

impl Sink for Pausable {
    fn name(&self) -> &str {
        self.sink.name()
    }

    /// The shipper asks before its first claim, and again every second until it may.
    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        if self.marker.exists() {
            let why = format!("shipping is paused until {} is removed", self.marker.display());
            return Box::pin(ready(Err(SinkError::Unfit(why))));
        }
        self.sink.check()
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        self.sink.ship(batch)
    }

    fn batch_max(&self) -> usize {
        self.sink.batch_max()
    }
}
