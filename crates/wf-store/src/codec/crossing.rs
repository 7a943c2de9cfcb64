//! Commands that partitions send one another, as inboxes and logs keep them. Nothing is compiled here.
//! Every member is named twice, where it is written and where it is read. Next: back to `command.rs`.

use std::sync::Arc;

use wf_core::Command;
use wf_core::command::Adopted;
use wf_core::rows::Subscription;

use crate::codec::read::{Members, wrong};
use crate::codec::write::Writer;
use crate::codec::{CodecError, bytes_from_hex};

pub(super) fn write(command: &Command, out: &mut Writer) {
    match command {
        Command::AdoptDefinitions { tenant, definitions } => {
            out.text("tenant", tenant).name("definitions").open('[');
            definitions.iter().for_each(|adopted| write_adopted(adopted, out));
            out.close(']');
        }
        Command::OpenSubscription { copy } => {
            out.key("subscription", copy.key).key("root", copy.root).key("host", copy.host);
            out.text("tenant", &copy.tenant).text("processId", &copy.process_id);
            out.text("message", &copy.message).text("correlationKey", &copy.correlation_key);
        }
        Command::CloseSubscription { subscription, root } => {
            out.key("subscription", *subscription).key("root", *root);
        }
        Command::Correlate { subscription, message, tenant, name, variables } => {
            out.key("subscription", *subscription).key("message", *message).text("tenant", tenant).text("name", name);
            out.name("variables").variables(variables);
        }
        Command::SettleCorrelation { subscription, message, accepted } => {
            out.key("subscription", *subscription).key("message", *message).flag("accepted", *accepted);
        }
        _ => (),
    }
}

/// XML that is not UTF-8 declares its own encoding: its bytes stay as they are.
fn write_adopted(adopted: &Adopted, out: &mut Writer) {
    out.open('{').key("key", adopted.key).text("processId", &adopted.process_id);
    out.int("version", i64::from(adopted.version)).text("resource", &adopted.resource);
    out.int("deployedAt", adopted.deployed_at);
    match std::str::from_utf8(&adopted.xml) {
        Ok(xml) => out.text("xml", xml),
        Err(_) => out.hex("xmlHex", &adopted.xml),
    };
    out.close('}');
}

pub(super) fn read(verb: &str, from: &mut Members<'_>) -> Result<Command, CodecError> {
    Ok(match verb {
        "adopt-definitions" => Command::AdoptDefinitions {
            tenant: from.text("tenant")?,
            definitions: from.objects("definitions")?.into_iter().map(read_adopted).collect::<Result<_, _>>()?,
        },
        "open-subscription" => Command::OpenSubscription { copy: read_copy(from)? },
        "close-subscription" => {
            Command::CloseSubscription { subscription: from.key("subscription")?, root: from.key("root")? }
        }
        "correlate" => Command::Correlate {
            subscription: from.key("subscription")?,
            message: from.key("message")?,
            tenant: from.text("tenant")?,
            name: from.text("name")?,
            variables: from.variables("variables")?,
        },
        "settle-correlation" => Command::SettleCorrelation {
            subscription: from.key("subscription")?,
            message: from.key("message")?,
            accepted: from.plain("accepted")?,
        },
        other => return Err(CodecError::Verb(other.to_owned())),
    })
}

fn read_copy(from: &mut Members<'_>) -> Result<Subscription, CodecError> {
    Ok(Subscription {
        key: from.key("subscription")?,
        host: from.key("host")?,
        scope: 0,
        root: from.key("root")?,
        tenant: from.text("tenant")?,
        process_id: from.text("processId")?,
        message: from.text("message")?,
        correlation_key: from.text("correlationKey")?,
        target: 0,
    })
}

fn read_adopted(mut from: Members<'_>) -> Result<Adopted, CodecError> {
    let adopted = Adopted {
        key: from.key("key")?,
        process_id: from.text("processId")?,
        version: from.plain("version")?,
        resource: from.text("resource")?,
        deployed_at: from.plain("deployedAt")?,
        xml: read_xml(&mut from)?,
        process: None,
    };
    from.finish()?;
    Ok(adopted)
}

pub(super) fn read_xml(from: &mut Members<'_>) -> Result<Arc<[u8]>, CodecError> {
    Ok(match from.text_if("xmlHex")? {
        Some(hex) => bytes_from_hex(&hex).ok_or_else(|| wrong("xmlHex", "not hexadecimal"))?.into(),
        None => from.text("xml")?.as_bytes().into(),
    })
}
