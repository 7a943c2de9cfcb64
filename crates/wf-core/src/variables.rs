//! Variables and scopes: where a name is found, where a write goes.
//! A merge overwrites the nearest scope that has the name; an unknown name is created in the root.

use std::collections::BTreeMap;
use std::sync::Arc;

use wf_feel::Value;
use wf_model::{Element as Node, Mapping};

use crate::draft::Run;
use crate::expressions::{Halt, Place, Step};
use crate::ids::Key;
use crate::planted::{self, Bug};
use crate::ranges::{RangeId, SortKey};
use crate::rows::{IncidentKind, Json, RowId, Scope, Text, Variable, Variables};
use crate::walk::{Here, Walk};

impl Walk<'_, '_> {
    /// The value in the nearest scope from `scope` up.
    pub(crate) fn variable(&self, scope: Key, name: &Text) -> Run<Option<Json>> {
        Ok(self.find(scope, name)?.map(|variable| variable.value.clone()))
    }

    fn find(&self, scope: Key, name: &Text) -> Run<Option<Arc<Variable>>> {
        let mut at = scope;
        while at != 0 {
            let id = RowId::Variable { scope: at, name: name.clone() };
            if let Some(found) = self.draft.get::<Variable>(&id)? {
                return Ok(Some(found));
            }
            at = self.parent(at)?;
        }
        Ok(None)
    }

    fn parent(&self, scope: Key) -> Run<Key> {
        Ok(self.draft.get::<Scope>(&RowId::Scope(scope))?.map_or(0, |scope| scope.parent))
    }

    /// Writes each variable into the nearest scope that has it, else into the root.
    pub(crate) fn merge_variables(&mut self, scope: Key, root: Key, variables: &Variables) -> Run<()> {
        for (name, value) in variables {
            let target = self.find(scope, name)?.map_or(root, |found| found.scope);
            self.set_variable(target, name, value)?;
        }
        self.tell_variables(root, scope, variables);
        Ok(())
    }

    /// Writes variables into exactly this scope or element.
    pub(crate) fn set_local_variables(&mut self, scope: Key, root: Key, variables: &Variables) -> Run<()> {
        for (name, value) in variables {
            self.set_variable(scope, name, value)?;
        }
        self.tell_variables(root, scope, variables);
        Ok(())
    }

    /// Puts variables aside on an element; they are told of when they are written.
    pub(crate) fn keep_variables(&mut self, element: Key, variables: &Variables) -> Run<()> {
        variables.iter().try_for_each(|(name, value)| self.set_variable(element, name, value))
    }

    fn tell_variables(&mut self, root: Key, scope: Key, variables: &Variables) {
        if !variables.is_empty() {
            self.draft.emit(root, scope, crate::event::What::VariablesSet { variables: variables.clone() });
        }
    }

    fn set_variable(&mut self, scope: Key, name: &Text, value: &Json) -> Run<()> {
        let row = Variable { scope, name: name.clone(), value: value.clone() };
        let old = self.draft.get::<Variable>(&row.id())?;
        let same = old.is_some_and(|old| *old == row || planted::is(Bug::NoOverwrite));
        if !same {
            self.draft.put(row)?;
        }
        Ok(())
    }

    pub(crate) fn delete_variables(&mut self, scope: Key) -> Run<()> {
        let range = RangeId::Variables(scope);
        let mut after = None;
        while let Some(sort) = self.draft.next_in(&range, after.as_ref())? {
            self.draft.delete(RowId::Variable { scope, name: sort.name.clone() })?;
            after = Some(sort);
        }
        Ok(())
    }

    /// Everything that is visible from an element: its own variables first, then each scope up. Sorted by name.
    /// With `fetch`, only these names.
    pub(crate) fn visible_variables(&self, from: &[Key], fetch: Option<&[Text]>) -> Run<Variables> {
        if let Some(names) = fetch {
            return self.fetch_variables(from, names);
        }
        let mut found: BTreeMap<Text, Json> = BTreeMap::new();
        for scope in from {
            let range = RangeId::Variables(*scope);
            let mut last: Option<SortKey> = None;
            while let Some(sort) = self.draft.next_in(&range, last.as_ref())? {
                let id = RowId::Variable { scope: *scope, name: sort.name.clone() };
                if let Some(row) = self.draft.get::<Variable>(&id)? {
                    found.entry(row.name.clone()).or_insert_with(|| row.value.clone());
                }
                last = Some(sort);
            }
        }
        Ok(found.into_iter().collect())
    }

    fn fetch_variables(&self, from: &[Key], names: &[Text]) -> Run<Variables> {
        let mut found = BTreeMap::new();
        for name in names {
            for scope in from {
                let id = RowId::Variable { scope: *scope, name: name.clone() };
                if let Some(row) = self.draft.get::<Variable>(&id)? {
                    found.insert(name.clone(), row.value.clone());
                    break;
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Local variables of an element that is entered. A nested target begins empty: what is around it stays there.
    pub(crate) fn map_inputs(&mut self, here: &Here, node: &Node) -> Step<Variables> {
        self.map(&node.inputs, here.place(), |_, _| Ok(None))
    }

    /// What goes up from an element that is left, which has seen `locals`. A nested target keeps the members beside it.
    pub(crate) fn map_outputs(&mut self, here: &Here, node: &Node, locals: &Variables) -> Step<Variables> {
        let scope = here.scope.key;
        self.map(&node.outputs, here.place_with(locals), |walk, name| walk.variable(scope, name))
    }

    /// Evaluates mappings in order; a later one sees the results of earlier ones. The result is sorted by name.
    fn map(
        &mut self,
        mappings: &[Mapping],
        place: Place<'_>,
        before: impl Fn(&Self, &Text) -> Run<Option<Json>>,
    ) -> Step<Variables> {
        let mut seen = place.locals.clone();
        let mut results = Variables::new();
        for mapping in mappings {
            let here = Place { locals: &seen, scope: place.scope };
            let value = self.evaluate(&mapping.source, here).map_err(as_mapping)?;
            let Some((name, path)) = mapping.target.split_first() else { continue };
            let value = match path {
                [] => value,
                path => {
                    let known = seen.iter().find(|(local, _)| local == name).map(|(_, json)| json.clone());
                    let old = known.map_or_else(|| before(self, name), |json| Ok(Some(json)))?;
                    nest(name, path, old, value)?
                }
            };
            let json = self.effort.write(&value).map_err(|error| mapping_failed(name, &error))?;
            insert_sorted(&mut seen, name.clone(), json.clone());
            insert_sorted(&mut results, name.clone(), json);
        }
        Ok(results)
    }
}

/// `a.b.c = value` where `a` was `old`.
fn nest(name: &str, path: &[Text], old: Option<Json>, value: Value) -> Step<Value> {
    let old = old.map_or(Ok(Value::Null), |json| Value::from_json(&json));
    let old = old.map_err(|error| mapping_failed(name, &error.to_string()))?;
    Ok(put_path(old, path, value))
}

fn put_path(old: Value, path: &[Text], value: Value) -> Value {
    let Some((first, rest)) = path.split_first() else { return value };
    let mut members = match old {
        Value::Context(members) => members.as_ref().clone(),
        _ => Vec::new(),
    };
    match members.iter_mut().find(|(name, _)| name == first) {
        Some((_, member)) => *member = put_path(std::mem::replace(member, Value::Null), rest, value),
        None => members.push((first.clone(), put_path(Value::Null, rest, value))),
    }
    Value::Context(Arc::new(members))
}

fn as_mapping(halt: Halt) -> Halt {
    match halt {
        Halt::Incident(_, message) => Halt::Incident(IncidentKind::Mapping, message),
        stop => stop,
    }
}

fn mapping_failed(name: &str, reason: &str) -> Halt {
    Halt::Incident(IncidentKind::Mapping, format!("mapping to '{name}': {reason}"))
}

/// Inserts or replaces, keeping the order by name.
pub(crate) fn insert_sorted(variables: &mut Variables, name: Text, value: Json) {
    match variables.binary_search_by(|(known, _)| known.cmp(&name)) {
        Ok(found) => {
            if let Some(slot) = variables.get_mut(found) {
                slot.1 = value;
            }
        }
        Err(place) => variables.insert(place, (name, value)),
    }
}
