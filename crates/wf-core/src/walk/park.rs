//! Elements that cannot go on: an incident says why, and the token stays until an operator resolves it.
//! It does not know how to go on; `incidents.rs` does.

use wf_model::ElementIdx;

use super::{Here, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::Halt;
use crate::ids::Key;
use crate::rows::{Element, Incident, IncidentKind, Phase, RowId, Text, Variable, Variables};

impl Walk<'_, '_> {
    /// A token stops here before it was (or after it would have been) at an element of its own. `locals` are kept for
    /// the next try.
    pub(crate) fn park(
        &mut self,
        here: &Here,
        node: ElementIdx,
        phase: Phase,
        locals: &Variables,
        halt: Halt,
    ) -> Run<()> {
        let (kind, message) = match halt {
            Halt::Stop(stop) => return Err(stop),
            Halt::Incident(kind, message) => (kind, message),
        };
        let key = self.draft.next_key();
        let incident = self.raise(here, node, key, 0, kind, &message)?;
        self.draft.insert_new(Element {
            key,
            scope: here.scope.key,
            root: here.scope.root,
            element: node,
            phase,
            job: 0,
            incident,
            has_locals: !locals.is_empty(),
            attached: Vec::new(),
        });
        for (name, value) in locals {
            self.draft.insert_new(Variable { scope: key, name: name.clone(), value: value.clone() });
        }
        Ok(())
    }

    /// Writes the element's row with an incident; an older one gives way.
    pub(crate) fn raise_on(&mut self, element: &Element, job: Key, kind: IncidentKind, message: &str) -> Run<Key> {
        let Some(here) = self.here(element.scope)? else { return Ok(0) };
        if element.incident != 0 {
            self.draft.delete(RowId::Incident(element.incident))?;
        }
        let incident = self.raise(&here, element.element, element.key, job, kind, message)?;
        self.draft.put(Element { incident, ..element.clone() })?;
        Ok(incident)
    }

    pub(crate) fn raise(
        &mut self,
        here: &Here,
        node: ElementIdx,
        element_key: Key,
        job: Key,
        kind: IncidentKind,
        message: &str,
    ) -> Run<Key> {
        let root = here.scope.root;
        let element_id = here.id_of(node);
        let incident = Incident {
            key: self.draft.next_key(),
            tenant: self.tenant_of(root)?,
            root,
            scope: here.scope.key,
            element_key,
            element_id: element_id.clone(),
            job,
            kind,
            message: message.into(),
            created_at: self.context.now,
        };
        let created = What::IncidentCreated { kind, element_id, message: message.into(), job };
        self.draft.emit(root, incident.key, created);
        Ok(self.draft.insert_new(incident).key)
    }

    /// An engine's own command knows no tenant: it is the instance's.
    pub(super) fn tenant_of(&self, root: Key) -> Run<Text> {
        let instance = self.instance(root)?;
        Ok(instance.map_or_else(|| self.context.tenant.clone(), |instance| instance.tenant.clone()))
    }
}
