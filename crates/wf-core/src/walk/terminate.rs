//! An end by force, in slices: a TERMINATING scope refuses everything at once and is emptied a budget at a time.

use wf_model::Element as Node;

use super::{Here, TERMINATIONS_MAX, Walk};
use crate::draft::{Run, gather};
use crate::event::What;
use crate::ids::Key;
use crate::ranges::RangeId;
use crate::rows::{After, Attached, Element, Job, JobState, RowId, Scope, ScopeState, Work};

impl Walk<'_, '_> {
    /// A terminate end event ends its own scope only; the scope then completes.
    pub(super) fn end_scope_by_force(&mut self, here: &Here, node: &Node) -> Run<()> {
        self.tell_completed(here, node);
        self.stop_scope(here.scope.key, After::Complete)
    }

    pub(crate) fn cancel_scope(&mut self, root: Key) -> Run<()> {
        self.stop_scope(root, After::Cancel)
    }

    pub(super) fn terminate(&mut self, scope: Key) -> Run<()> {
        let row = self.draft.get::<Scope>(&RowId::Scope(scope))?;
        if row.is_none_or(|row| row.state != ScopeState::Terminating) {
            return Ok(());
        }
        let mut budget = TERMINATIONS_MAX;
        if self.empty_scope(scope, &mut budget)? {
            return self.after_terminated(scope);
        }
        self.schedule(scope, Work::Terminate)
    }

    /// Whether the scope is empty now; `false` when the budget is used up first. As deep as the model nests.
    fn empty_scope(&mut self, scope: Key, budget: &mut usize) -> Run<bool> {
        self.ask_for_content(scope, *budget)?;
        let mut after = None;
        while let Some(sort) = self.draft.next_in(&RangeId::Elements(scope), after.as_ref())? {
            if *budget == 0 {
                return Ok(false);
            }
            *budget -= 1;
            let id = RowId::Element { scope, key: sort.key };
            let (Some(here), Some(element)) = (self.here(scope)?, self.draft.get::<Element>(&id)?) else {
                return Ok(true);
            };
            if here.is_scope(element.element) && !self.empty_inner(element.key, budget)? {
                return Ok(false);
            }
            self.terminate_element(&here, &element)?;
            after = Some(sort);
        }
        Ok(true)
    }

    /// The elements of this slice and what hangs on them.
    fn ask_for_content(&self, scope: Key, limit: usize) -> Run<()> {
        let sorts = self.draft.first_in(&RangeId::Elements(scope), limit)?;
        let elements = gather(sorts, |sort| self.draft.get::<Element>(&RowId::Element { scope, key: sort.key }))?;
        gather(elements.iter().flatten().flat_map(|element| hangs_on(element)), |id| self.draft.row(&id))?;
        Ok(())
    }

    fn empty_inner(&mut self, inner: Key, budget: &mut usize) -> Run<bool> {
        self.change_scope(inner, |scope| scope.state = ScopeState::Terminating)?;
        if !self.empty_scope(inner, budget)? {
            return Ok(false);
        }
        self.drop_scope(inner)?;
        Ok(true)
    }

    fn drop_scope(&mut self, scope: Key) -> Run<()> {
        self.delete_variables(scope)?;
        self.draft.delete(RowId::Scope(scope))
    }

    /// Its job, timers, subscriptions, incident and variables go with it. Its token stays with the caller.
    pub(super) fn terminate_element(&mut self, here: &Here, element: &Element) -> Run<()> {
        if element.job != 0 {
            self.cancel_job(element.job)?;
        }
        self.remove_element(element)?;
        if let Some(node) = here.node(element.element) {
            let terminated = What::ElementTerminated { element_id: node.id.clone() };
            self.draft.emit(element.root, element.key, terminated);
        }
        Ok(())
    }

    fn cancel_job(&mut self, key: Key) -> Run<()> {
        let Some(job) = self.draft.get::<Job>(&RowId::Job(key))? else { return Ok(()) };
        if matches!(job.state, JobState::Completed | JobState::Canceled) {
            return Ok(());
        }
        let mut canceled = (*job).clone();
        canceled.state = JobState::Canceled;
        canceled.due = self.context.now;
        self.draft.put(canceled)?;
        self.draft.emit(job.root, key, What::JobCanceled);
        Ok(())
    }

    fn after_terminated(&mut self, key: Key) -> Run<()> {
        let Some(scope) = self.draft.get::<Scope>(&RowId::Scope(key))? else { return Ok(()) };
        // Stopped from around it in the meantime: it goes with what is around it, and no path starts.
        if !self.is_live(scope.parent)? {
            return Ok(());
        }
        match scope.after {
            After::Nothing => Ok(()),
            After::Cancel => self.end_instance(&scope, ScopeState::Canceled),
            After::Complete => {
                self.change_scope(key, |scope| {
                    scope.state = ScopeState::Active;
                    scope.after = After::Nothing;
                    scope.active = 0;
                })?;
                let Some(scope) = self.draft.get::<Scope>(&RowId::Scope(key))? else { return Ok(()) };
                self.complete_scope(&scope)
            }
            After::Continue(target) => {
                let id = RowId::Element { scope: scope.parent, key };
                let (Some(outer), Some(element)) = (self.here(scope.parent)?, self.draft.get::<Element>(&id)?) else {
                    return Ok(());
                };
                let brought = self.visible_variables(&[key], None)?;
                self.terminate_element(&outer, &element)?;
                self.drop_scope(key)?;
                self.leave_event(&outer, target, &brought)
            }
        }
    }
}

/// The rows that go with an element, but for its variables.
fn hangs_on(element: &Element) -> Vec<RowId> {
    let attached = element.attached.iter().map(Attached::row_id);
    let job = (element.job != 0).then_some(RowId::Job(element.job));
    let incident = (element.incident != 0).then_some(RowId::Incident(element.incident));
    attached.chain(job).chain(incident).collect()
}
