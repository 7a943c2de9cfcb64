//! Events as sinks get them: CloudEvents 1.0 JSON, frozen when the turn is made.

use wf_core::Event;
use wf_core::rows::Text;
use wf_core::text::{json_string, rfc3339};
use wf_store::codec::event_payload_json;
use wf_store::event_id;

use crate::decided::Stamp;

pub fn topic(event: &Event) -> Text {
    format!("wf.{}", event.what.name()).into()
}

/// `{specversion,id,source,type,subject,time,tenantid,datacontenttype,data}`; `data` is the audit's payload.
pub fn cloud_event(event: &Event, n: u32, stamp: &Stamp<'_>, source: &str) -> String {
    let id = event_id(stamp.partition, stamp.position, n);
    let source = json_string(source);
    let tenant = stamp.tenant;
    let name = event.what.name();
    let subject = event.root;
    let time = rfc3339(stamp.time);
    let data = event_payload_json(event);
    format!(
        "{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":{source},\"type\":\"wf.{name}\",\
         \"subject\":\"{subject}\",\"time\":\"{time}\",\"tenantid\":\"{tenant}\",\
         \"datacontenttype\":\"application/json\",\"data\":{data}}}"
    )
}
