//! S5: PostgreSQL is restored from a base backup with older state. The commands are those of docs/operations/restore.md, run as
//! they stand there: the server's by whoever administers it, the nodes' by whoever runs them.

use e2e::node::{Node, Setup};
use servers::Cluster;

use crate::cases::scenarios::restore::Runbook;
use crate::cases::scenarios::restore::{commands_of, restored_from_a_backup_and_events_replayed, shell};

const PAGE: &str = "docs/operations/restore.md";
/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

struct Page(Cluster);

impl Page {
    fn at_the_server(&self, heading: &str) {
        let folder = self.0.writable_folder("administrator");
        self.0.shell(&folder, &commands_of(PAGE, heading));
    }
}

impl Runbook for Page {
    fn back_up(&self, _: &Setup, _: &Node) {
        self.at_the_server("## Back up");
    }

    fn before_the_start(&self, setup: &Setup) {
        shell(setup, &commands_of(PAGE, "## Restore: hold shipping back"), NOWHERE);
        self.at_the_server("## Restore: put the backup in its place");
    }

    fn after_the_start(&self, setup: &Setup, node: &Node) {
        shell(setup, &commands_of(PAGE, "## Restore: after the start"), &node.url);
    }

    fn let_shipping_begin(&self, setup: &Setup, node: &Node) {
        shell(setup, &commands_of(PAGE, "## Restore: let shipping begin"), &node.url);
    }
}

#[test]
fn s5_database_restored_from_a_base_backup_and_events_replayed() {
    let page = Page(Cluster::start());
    page.0.stands_alone();
    let setup = Setup::at(&page.0.create_database(None));
    restored_from_a_backup_and_events_replayed(setup, &page);
}
