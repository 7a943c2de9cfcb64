//! Instances: start, cancel, variables from outside.

use std::sync::Arc;

use wf_model::{ElementIdx, Kind, Process, ROOT};

use crate::command::{Context, UniqueOn};
use crate::draft::Run;
use crate::event::What;
use crate::ids::{self, Key};
use crate::outcome::{Noun, Outcome, Rejection, Started};
use crate::planted::{self, Bug};
use crate::ranges::{RangeId, SortKey};
use crate::rows::{After, Definition, Element, Instance, RowId, Scope, ScopeState, Text, Unique, Variable, Variables};
use crate::walk::{Task, Walk};

pub(crate) fn start(
    walk: &mut Walk<'_, '_>,
    process_id: &Text,
    version: Option<u32>,
    variables: &Variables,
    unique: Option<&UniqueOn>,
) -> Run<Outcome> {
    let tenant = walk.context.tenant.clone();
    let definition = find_definition(walk, &tenant, process_id, version)?;
    let process = walk.draft.process(definition.key)?;
    let Some(start) = none_start(&process) else {
        let message = format!("process '{process_id}' has no none start event; it is started by a message");
        return Err(Rejection::Invalid { field: "processDefinitionId", message }.into());
    };
    if let Some(twin) = unique.map(|unique| live_twin(walk, &definition, unique)).transpose()?.flatten()
        && !planted::is(Bug::NotUnique)
    {
        return Ok(Outcome::Started(twin));
    }
    let lineage = start_lineage(walk, process_id);
    let beginning = Beginning { definition: &definition, start, variables, lineage, correlation: None };
    let key = begin(walk, &beginning, unique)?;
    Ok(Outcome::Started(Started { key, process_id: process_id.clone(), version: definition.version, existing: false }))
}

fn none_start(process: &Process) -> Option<ElementIdx> {
    match process.element(ROOT).map(|root| &root.kind) {
        Some(Kind::Scope(scope)) => scope.none_start,
        _ => None,
    }
}

/// The definition of a version, or the latest.
pub(crate) fn find_definition(
    walk: &Walk<'_, '_>,
    tenant: &Text,
    process_id: &Text,
    version: Option<u32>,
) -> Run<Arc<Definition>> {
    let range = RangeId::Versions { tenant: tenant.clone(), process_id: process_id.clone() };
    let before = version.map(|version| SortKey::by_rank(-i64::from(version) - 1, Key::MAX));
    let found = walk.draft.next_in(&range, before.as_ref())?;
    let wanted = found.filter(|sort| version.is_none_or(|version| sort.rank == -i64::from(version)));
    let row = match wanted {
        Some(sort) => walk.draft.get::<Definition>(&RowId::Definition(sort.key))?,
        None => None,
    };
    row.ok_or_else(|| Rejection::NotFound(Noun::Definition).into())
}

fn live_twin(walk: &Walk<'_, '_>, definition: &Definition, unique: &UniqueOn) -> Run<Option<Started>> {
    let id = unique_id(definition, unique);
    let Some(row) = walk.draft.get::<Unique>(&id)? else { return Ok(None) };
    let (root, instance) = instance_of(walk, row.root)?;
    let twin =
        Started { key: root.key, process_id: instance.process_id.clone(), version: instance.version, existing: true };
    // While a big instance is being canceled in slices its row still stands.
    Ok((root.state == ScopeState::Active).then_some(twin))
}

fn unique_id(definition: &Definition, unique: &UniqueOn) -> RowId {
    RowId::Unique {
        tenant: definition.tenant.clone(),
        process_id: definition.process_id.clone(),
        variable: unique.variable.clone(),
        value: unique.value,
    }
}

/// The same again when the client sends its request again, on a restored store too. Without a key of the client's
/// nothing ties the two together, and the position takes its place.
fn start_lineage(walk: &Walk<'_, '_>, process_id: &str) -> [u8; 16] {
    let context = walk.context;
    let position = context.position.to_le_bytes();
    let origin: [&[u8]; 2] = match context.origin.is_empty() {
        true => [b"position", &position],
        false => [b"key", context.origin.as_bytes()],
    };
    ids::hash16(&[b"start", context.tenant.as_bytes(), origin[0], origin[1], process_id.as_bytes()])
}

/// What a new instance is made of.
pub(crate) struct Beginning<'b> {
    pub definition: &'b Definition,
    pub start: ElementIdx,
    pub variables: &'b Variables,
    pub lineage: [u8; 16],
    /// Of the message that starts it.
    pub correlation: Option<Text>,
}

pub(crate) fn begin(walk: &mut Walk<'_, '_>, beginning: &Beginning<'_>, unique: Option<&UniqueOn>) -> Run<Key> {
    let definition = beginning.definition;
    let key = walk.draft.next_key();
    walk.draft.insert_new(root_of(walk.context, key, beginning, unique));
    walk.draft.born(key);
    for (name, value) in beginning.variables {
        walk.draft.insert_new(Variable { scope: key, name: name.clone(), value: value.clone() });
    }
    if let Some(unique) = unique {
        walk.draft.put(Unique {
            tenant: definition.tenant.clone(),
            process_id: definition.process_id.clone(),
            variable: unique.variable.clone(),
            value: unique.value,
            root: key,
        })?;
    }
    let started = What::InstanceStarted {
        process_id: definition.process_id.clone(),
        version: definition.version,
        variables: beginning.variables.clone(),
    };
    walk.draft.emit(key, key, started);
    walk.push(Task::Arrive { scope: key, element: beginning.start, flow: None });
    Ok(key)
}

fn root_of(context: &Context, key: Key, beginning: &Beginning<'_>, unique: Option<&UniqueOn>) -> Scope {
    let definition = beginning.definition;
    let instance = Instance {
        tenant: definition.tenant.clone(),
        process_id: definition.process_id.clone(),
        version: definition.version,
        started_at: context.now,
        ended_at: 0,
        started_position: context.position,
        ended_position: 0,
        unique: unique.map(|unique| (unique.variable.clone(), unique.value)),
        start_correlation: beginning.correlation.clone(),
        steps: 0,
    };
    Scope {
        key,
        root: key,
        parent: 0,
        definition: definition.key,
        element: ROOT,
        state: ScopeState::Active,
        active: 1,
        joins: Vec::new(),
        visits: Vec::new(),
        lineage: beginning.lineage,
        after: After::Nothing,
        instance: Some(Arc::new(instance)),
    }
}

pub(crate) fn cancel(walk: &mut Walk<'_, '_>, key: Key) -> Run<Outcome> {
    live_instance(walk, key)?;
    walk.cancel_scope(key)?;
    Ok(Outcome::Canceled { instance: key })
}

pub(crate) fn set_variables(
    walk: &mut Walk<'_, '_>,
    key: Key,
    scope: Option<Key>,
    variables: &Variables,
) -> Run<Outcome> {
    live_instance(walk, key)?;
    match scope.filter(|scope| *scope != key) {
        None => walk.set_local_variables(key, key, variables)?,
        Some(scope) => set_inner(walk, key, scope, variables)?,
    }
    Ok(Outcome::VariablesSet { key: scope.unwrap_or(key) })
}

/// Into a sub-process or a waiting task of the instance.
fn set_inner(walk: &mut Walk<'_, '_>, root: Key, scope: Key, variables: &Variables) -> Run<()> {
    if let Some(inner) = walk.draft.get::<Scope>(&RowId::Scope(scope))?.filter(|inner| inner.root == root) {
        if !walk.is_live(inner.key)? {
            return Err(Rejection::InstanceFinished.into());
        }
        return walk.set_local_variables(scope, root, variables);
    }
    let element = find_element(walk, root, scope)?;
    let Some(element) = element else {
        let message = format!("'{scope}' is no live scope or element of this instance");
        return Err(Rejection::Invalid { field: "scope", message }.into());
    };
    let mut changed = (*element).clone();
    changed.has_locals = true;
    walk.draft.put(changed)?;
    walk.set_local_variables(scope, root, variables)
}

/// An element is stored under its scope: look through the instance's scopes, outermost first.
fn find_element(walk: &Walk<'_, '_>, scope: Key, wanted: Key) -> Run<Option<Arc<Element>>> {
    if let Some(found) = walk.draft.get::<Element>(&RowId::Element { scope, key: wanted })? {
        return Ok(Some(found));
    }
    let Some(here) = walk.here(scope)? else { return Ok(None) };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&RangeId::Elements(scope), after.as_ref())? {
        let element = walk.draft.get::<Element>(&RowId::Element { scope, key: sort.key })?;
        let is_scope = element.is_some_and(|element| here.is_scope(element.element));
        if is_scope && let Some(found) = find_element(walk, sort.key, wanted)? {
            return Ok(Some(found));
        }
        after = Some(sort);
    }
    Ok(None)
}

/// The root scope and its instance, if it is the tenant's.
fn instance_of(walk: &Walk<'_, '_>, key: Key) -> Run<(Arc<Scope>, Arc<Instance>)> {
    let root = walk.draft.get::<Scope>(&RowId::Scope(key))?;
    let found = root.and_then(|root| root.instance.clone().map(|instance| (root, instance)));
    let found = found.filter(|(_, instance)| instance.tenant == walk.context.tenant);
    found.ok_or_else(|| Rejection::NotFound(Noun::Instance).into())
}

/// The instance, if it is the tenant's and alive.
fn live_instance(walk: &Walk<'_, '_>, key: Key) -> Run<(Arc<Scope>, Arc<Instance>)> {
    let (root, instance) = instance_of(walk, key)?;
    match root.state {
        ScopeState::Active => Ok((root, instance)),
        _ => Err(Rejection::InstanceFinished.into()),
    }
}
