//! What `wf dev` says to somebody who sees it for the first time: three commands that work as they stand.
//! The model that they need is put beside the store.

use std::path::Path;

const SAMPLE: &str = include_str!("../../../samples/order.bpmn");

/// Deploy, start, activate.
pub fn commands(url: &str, data: &Path) -> String {
    let file = data.join("order.bpmn");
    // A hint that cannot be written is no reason not to serve.
    let _ = if file.exists() { Ok(()) } else { std::fs::write(&file, SAMPLE) };
    let file = file.display();
    format!(
        "\nTry it:\n  \
         curl -s {url}/api/v1/definitions -H 'Content-Type: application/xml' --data-binary @{file}\n  \
         curl -s {url}/api/v1/instances -H 'Content-Type: application/json' -H 'Idempotency-Key: order-4711' \
         -d '{{\"processDefinitionId\": \"order\", \"variables\": {{\"orderId\": \"O-4711\", \"total\": 99.90}}}}'\n  \
         curl -s {url}/api/v1/jobs/activate -H 'Content-Type: application/json' \
         -d '{{\"type\": \"charge-card\", \"worker\": \"worker-1\"}}'\n\
         \nEnd it with Ctrl-C. What it answered stays in {}.",
        data.display()
    )
}
