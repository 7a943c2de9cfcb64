//! Several partitions: a world each, and between any two a line in each direction on which commands arrive in order.
//! What stands on a line has been sent for good; when it arrives the test decides. Next: `invariants.rs`.

use std::collections::{BTreeMap, VecDeque};

use wf_core::rows::{Handover, Message, Subscription};
use wf_core::{Command, Key, Outcome, Partitions, Row, RowId, ids};

use super::{World, model};

#[derive(Clone)]
pub struct Across {
    worlds: Vec<World>,
    lines: BTreeMap<(u16, u16), VecDeque<Command>>,
}

impl Across {
    /// With the models deployed everywhere.
    pub fn with(partitions: u16, models: &[(&str, &str)]) -> Across {
        let worlds = (1..=partitions).map(|partition| World::of(partition, Partitions::of(partitions))).collect();
        let mut all = Across { worlds, lines: BTreeMap::new() };
        for (process_id, lines) in models {
            all.at(1, |world| world.deploy(&model::xml(process_id, lines)).unwrap());
        }
        all.deliver_all();
        all.worlds.iter_mut().for_each(|world| drop(world.trace()));
        all
    }

    pub fn world(&self, partition: u16) -> &World {
        &self.worlds[usize::from(partition) - 1]
    }

    /// Acts in one partition; what that sends stands on the lines then.
    pub fn at<T>(&mut self, partition: u16, act: impl FnOnce(&mut World) -> T) -> T {
        let world = &mut self.worlds[usize::from(partition) - 1];
        let result = act(world);
        for (target, command) in std::mem::take(&mut world.sent) {
            assert_ne!(target, partition, "{command:?} stays here");
            self.lines.entry((partition, target)).or_default().push_back(command);
        }
        result
    }

    /// The next command on a line; `None`: it is empty.
    pub fn deliver(&mut self, from: u16, to: u16) -> Option<Command> {
        let command = self.lines.get_mut(&(from, to))?.pop_front()?;
        let done = self.at(to, |world| world.run(command.clone()));
        assert!(matches!(done, Ok(Outcome::Done { .. })), "{command:?}: {done:?}");
        Some(command)
    }

    /// Off a line, without its being executed.
    pub fn take(&mut self, from: u16, to: u16) -> Option<Command> {
        self.lines.get_mut(&(from, to))?.pop_front()
    }

    pub fn peek(&self, from: u16, to: u16) -> Option<Command> {
        self.lines.get(&(from, to))?.front().cloned()
    }

    pub fn deliver_all(&mut self) {
        let mut left = 100_000;
        while let Some((from, to)) = self.lines.iter().find(|(_, line)| !line.is_empty()).map(|(ends, _)| *ends) {
            self.deliver(from, to);
            left -= 1;
            assert_ne!(left, 0, "it comes and goes for ever: {}", self.on_the_way());
        }
    }

    pub fn is_quiet(&self) -> bool {
        self.lines.values().all(VecDeque::is_empty)
    }

    /// Which commands stand where, for telling states apart.
    pub fn on_the_way(&self) -> String {
        format!("{:?}", self.lines)
    }

    pub fn subscriptions(&self, partition: u16) -> Vec<Subscription> {
        self.rows(partition, |row| match row {
            Row::Subscription(row) => Some((**row).clone()),
            _ => None,
        })
    }

    pub fn messages(&self, partition: u16) -> Vec<Message> {
        self.rows(partition, |row| match row {
            Row::Message(row) => Some((**row).clone()),
            _ => None,
        })
    }

    pub fn handovers(&self, partition: u16) -> Vec<Handover> {
        self.rows(partition, |row| match row {
            Row::Handover(row) => Some((**row).clone()),
            _ => None,
        })
    }

    fn rows<T>(&self, partition: u16, pick: impl Fn(&Row) -> Option<T>) -> Vec<T> {
        self.world(partition).rows.values().filter_map(pick).collect()
    }

    /// What must hold wherever nothing is on its way.
    pub fn check_quiet(&self) {
        assert!(self.is_quiet());
        let all = || self.worlds.iter().map(|world| world.partition);
        for partition in all() {
            assert_eq!(self.handovers(partition), [], "nobody settles them");
            for row in self.subscriptions(partition) {
                match row.scope == 0 {
                    true => self.has_original(&row),
                    false => self.has_copy(&row, partition),
                }
            }
        }
    }

    fn has_original(&self, copy: &Subscription) {
        let instance = self.world(ids::partition_of(copy.key));
        assert!(instance.rows.contains_key(&RowId::Subscription(copy.key)), "nobody's copy: {copy:?}");
    }

    fn has_copy(&self, open: &Subscription, partition: u16) {
        let home = self.home(&open.message, &open.correlation_key);
        if home != partition {
            let copies = self.subscriptions(home);
            assert!(copies.iter().any(|copy| copy.key == open.key), "unknown to its message: {open:?}");
        }
    }

    pub fn home(&self, message: &str, correlation_key: &str) -> u16 {
        ids::home_of_message(&self.worlds[0].tenant, message, correlation_key, Partitions::of(self.worlds.len() as u16))
    }

    /// A correlation key whose messages are received in this partition.
    pub fn key_at(&self, partition: u16) -> String {
        let mut keys = (1..).map(|number: u32| number.to_string());
        keys.find(|key| self.home("pay", key) == partition).unwrap()
    }

    /// The instances that a publication reached, and its key.
    pub fn publish(&mut self, name: &str, key: &str, ttl_ms: i64, variables: &str) -> (Key, Vec<Key>) {
        let home = self.home(name, key);
        match self.at(home, |world| world.publish_id(name, key, None, ttl_ms, variables)) {
            Outcome::Published { key, correlated, duplicate: false, .. } => (key, correlated),
            other => panic!("{other:?}"),
        }
    }
}
