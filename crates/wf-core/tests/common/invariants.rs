//! What must hold between rows after every command, whatever came before.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::canonical;
use wf_core::rows::*;
use wf_core::{Key, RangeId, Row, RowId};

use super::World;

impl World {
    /// Panics with the first broken rule.
    pub fn check(&self) {
        let (tokens, owners) = (self.tokens(), self.owners());
        for row in self.rows.values() {
            match row {
                Row::StartSubscription(row) => assert!(self.has(&RowId::Definition(row.definition)), "{row:?}"),
                Row::Scope(scope) => self.check_scope(scope, tokens.get(&scope.key).copied().unwrap_or(0)),
                Row::Element(element) => self.check_element(element),
                Row::Variable(variable) => assert!(owners.contains(&variable.scope), "nobody's variable: {variable:?}"),
                Row::Job(job) => self.check_job(job),
                Row::Step(step) => assert!(self.has(&RowId::Job(step.job)), "{step:?}"),
                Row::Timer(timer) => self.check_attached(timer.scope, timer.host, timer.key),
                Row::Subscription(copy) if copy.scope == 0 => {
                    assert_ne!(wf_core::ids::partition_of(copy.key), self.partition, "{copy:?}");
                }
                Row::Subscription(open) => self.check_attached(open.scope, open.host, open.key),
                Row::Incident(incident) => self.check_incident(incident),
                Row::StartLock(lock) => assert!(self.is_alive(lock.root), "{lock:?} outlives its instance"),
                Row::Unique(unique) => assert!(self.is_alive(unique.root), "{unique:?} outlives its instance"),
                Row::Definition(_) | Row::Message(_) | Row::MessageId(_) | Row::FollowUp(_) | Row::Handover(_) => (),
            }
        }
        self.check_digest();
    }

    /// Live elements and tokens on their way, by scope.
    fn tokens(&self) -> BTreeMap<Key, u32> {
        let mut tokens = BTreeMap::new();
        for row in self.rows.values() {
            match row {
                Row::Element(element) => *tokens.entry(element.scope).or_default() += 1,
                Row::FollowUp(follow_up) if matches!(follow_up.work, Work::Arrive { .. }) => {
                    *tokens.entry(follow_up.scope).or_default() += 1;
                }
                _ => (),
            }
        }
        tokens
    }

    fn check_scope(&self, scope: &Scope, tokens: u32) {
        assert!(self.has(&RowId::Definition(scope.definition)), "{scope:?}");
        let is_ended = matches!(scope.state, ScopeState::Completed | ScopeState::Canceled);
        if is_ended {
            let elements = RangeId::Elements(scope.key);
            assert!(self.range_of(&elements).is_none_or(|range| range.is_empty()), "elements of ended {scope:?}");
            assert!(self.rows.values().all(|row| !lives_in(row, scope.key)), "rows of ended {scope:?}");
            return;
        }
        if scope.parent != 0 {
            assert!(self.has(&RowId::Scope(scope.parent)), "no parent: {scope:?}");
            assert!(self.has(&RowId::Element { scope: scope.parent, key: scope.key }), "no element: {scope:?}");
        }
        if scope.state == ScopeState::Active {
            let waiting: u32 = scope.joins.iter().map(|(_, count)| count).sum();
            assert_eq!(scope.active, tokens + waiting, "tokens of {scope:?}");
        }
    }

    fn check_element(&self, element: &Element) {
        assert!(self.has(&RowId::Scope(element.scope)), "no scope: {element:?}");
        if element.phase != Phase::Active {
            assert_ne!(element.incident, 0, "stopped without an incident: {element:?}");
        }
        if element.incident != 0 {
            let incident = self.rows.get(&RowId::Incident(element.incident));
            assert!(matches!(incident, Some(Row::Incident(row)) if row.element_key == element.key), "{element:?}");
        }
        if element.job != 0 {
            let job = self.rows.get(&RowId::Job(element.job));
            assert!(
                matches!(job, Some(Row::Job(job)) if is_live(job) && job.element_key == element.key),
                "{element:?}"
            );
        }
        for attached in &element.attached {
            let id = attached.row_id();
            assert!(self.has(&id), "nothing attached at {id:?}: {element:?}");
        }
    }

    /// Who may have variables.
    fn owners(&self) -> BTreeSet<Key> {
        let owner = |row: &Row| match row {
            Row::Scope(scope) => Some(scope.key),
            Row::Element(element) if element.has_locals => Some(element.key),
            _ => None,
        };
        self.rows.values().filter_map(owner).collect()
    }

    fn check_job(&self, job: &Job) {
        let element = self.rows.get(&RowId::Element { scope: job.scope, key: job.element_key });
        let element = match element {
            Some(Row::Element(element)) => Some(element),
            _ => None,
        };
        if is_live(job) {
            assert_eq!(element.map(|element| element.job), Some(job.key), "{job:?}");
        }
        if matches!(job.state, JobState::Failed | JobState::ErrorThrown) {
            assert!(element.is_some_and(|element| element.incident != 0), "stuck without an incident: {job:?}");
        }
    }

    fn check_attached(&self, scope: Key, host: Key, key: Key) {
        let element = self.rows.get(&RowId::Element { scope, key: host });
        let is_attached =
            matches!(element, Some(Row::Element(element)) if element.attached.iter().any(|own| own.key == key));
        assert!(is_attached, "{key} is attached to nothing");
    }

    fn check_incident(&self, incident: &Incident) {
        assert!(self.is_alive(incident.root), "of an ended instance: {incident:?}");
        if incident.element_key != 0 {
            let id = RowId::Element { scope: incident.scope, key: incident.element_key };
            let element = self.rows.get(&id);
            let is_known = matches!(element, Some(Row::Element(element)) if element.incident == incident.key);
            assert!(is_known, "its element does not know {incident:?}");
        }
    }

    /// By increments and by a sum over all rows.
    fn check_digest(&self) {
        let counters = canonical::digest_of_counters(self.partition, self.next_counter);
        let sum = self.rows.values().fold(counters, |sum, row| sum.wrapping_add(canonical::digest_of(row)));
        assert_eq!(self.digest, sum, "the digest");
    }

    fn has(&self, id: &RowId) -> bool {
        self.rows.contains_key(id)
    }

    fn is_alive(&self, root: Key) -> bool {
        let root = self.rows.get(&RowId::Scope(root));
        matches!(root, Some(Row::Scope(root)) if matches!(root.state, ScopeState::Active | ScopeState::Terminating))
    }
}

fn is_live(job: &Job) -> bool {
    !matches!(job.state, JobState::Completed | JobState::Canceled)
}

/// Whether an ended instance must not have it any more.
fn lives_in(row: &Row, root: Key) -> bool {
    match row {
        Row::Scope(scope) => scope.root == root && scope.key != root,
        Row::Element(row) => row.root == root,
        Row::Job(job) => job.root == root && is_live(job),
        Row::Timer(row) => row.root == root,
        Row::Subscription(row) => row.root == root && row.scope != 0,
        Row::Incident(row) => row.root == root,
        _ => false,
    }
}
