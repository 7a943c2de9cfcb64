//! `wf nodes`: who shares the store, and who owns what.

use wf_client::{Node, Nodes, Partition};

use crate::cli::{NodesArgs, Output};
use crate::output::{self, Done};

use super::connect;

pub async fn list(args: NodesArgs) -> Done {
    let nodes = connect(&args.remote)?.nodes().await?;
    match args.remote.output {
        Output::Json => output::print(&output::json(&nodes)),
        Output::Table => output::print(&shown(&nodes)),
    }
}

fn shown(nodes: &Nodes) -> String {
    let headings = ["node", "address", "version", "joined", "lease left", "partitions"];
    let members = output::table(&headings, nodes.nodes.iter().map(node_row).collect());
    let headings = ["partition", "owner", "epoch", "position", "inbox"];
    let partitions = output::table(&headings, nodes.partitions.iter().map(partition_row).collect());
    format!("{members}\n{partitions}")
}

fn node_row(node: &Node) -> Vec<String> {
    let name = output::or_dash(Some(&node.name));
    let partitions: Vec<String> = node.partitions.iter().map(u16::to_string).collect();
    vec![
        if node.is_self { format!("{name} (asked)") } else { name },
        output::or_dash(Some(&node.address)),
        output::or_dash(Some(&node.version)),
        output::or_dash(node.joined_at.as_deref()),
        node.lease_left_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
        output::or_dash(Some(&partitions.join(" "))),
    ]
}

fn partition_row(row: &Partition) -> Vec<String> {
    vec![
        row.partition.to_string(),
        output::or_dash(row.owner.as_deref()),
        row.epoch.clone(),
        row.position.clone(),
        row.inbox.to_string(),
    ]
}
