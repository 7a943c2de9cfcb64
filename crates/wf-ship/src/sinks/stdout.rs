//! Envelopes as lines on the standard output: for a look, and for pipes. Nobody acknowledges; written is shipped.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::sink::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo};

pub struct StdoutSink {
    name: String,
    out: Mutex<Box<dyn Write + Send>>,
}

impl StdoutSink {
    pub fn new(name: &str) -> StdoutSink {
        StdoutSink::to(name, Box::new(std::io::stdout()))
    }

    /// Lines go to `out` instead.
    pub fn to(name: &str, out: Box<dyn Write + Send>) -> StdoutSink {
        StdoutSink { name: name.to_owned(), out: Mutex::new(out) }
    }

    /// All lines with one flush: a reader sees whole batches. A failure leaves open how much came through.
    fn write(&self, batch: &[Shipment]) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for shipment in batch {
            lines.extend_from_slice(&shipment.envelope);
            lines.push(b'\n');
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&lines)?;
        out.flush()
    }
}

impl Sink for StdoutSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        Box::pin(std::future::ready(Ok(SinkInfo { window_ms: None })))
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        let result = match self.write(batch) {
            Ok(()) => ShipResult::Shipped { duplicate: false },
            Err(error) => ShipResult::Retry { error: error.to_string(), retry_after_ms: None },
        };
        Box::pin(std::future::ready(vec![result; batch.len()]))
    }
}
