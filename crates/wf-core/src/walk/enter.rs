//! A token arrives at an element. Everything that can fail is evaluated first; only then rows change,
//! so that an incident leaves nothing half done. Next: `leave.rs`.

use std::sync::Arc;

use wf_model::{Element as Node, ElementIdx, End, FlowIdx, JobSpec, Kind, Start};

use super::attach::Plan;
use super::{Here, INSTANCE_STEPS_MAX, Task, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::{Halt, Place, Step};
use crate::ids::{self, Key};
use crate::rows::{
    After, Attached, Element, IncidentKind, Job, JobState, Json, Phase, Scope, ScopeState, Text, Variable, Variables,
};
use crate::text::json_string;

/// A worker's element as it will be: all that could fail has been evaluated.
struct NewJob {
    job_type: Text,
    retries: i32,
    priority: i32,
    headers: Json,
}

impl Walk<'_, '_> {
    pub(super) fn arrive(&mut self, scope: Key, element: ElementIdx, flow: Option<FlowIdx>) -> Run<()> {
        // A token that was on its way when its scope, or one around it, was stopped is no more.
        if !self.is_live(scope)? {
            return Ok(());
        }
        let Some(here) = self.here(scope)? else { return Ok(()) };
        *self.steps_of.entry(here.scope.root).or_default() += 1;
        let entered = match self.instance(here.scope.root)? {
            // A token at a join knows its flow, which a parked one would forget. Each loop has another element too.
            Some(instance) if instance.steps >= INSTANCE_STEPS_MAX && !here.is_join(element) => Err(over_budget()),
            _ => self.enter(&here, element, flow),
        };
        match entered {
            Ok(()) => Ok(()),
            Err(halt) => self.park(&here, element, Phase::Entering, &Variables::new(), halt),
        }
    }

    fn enter(&mut self, here: &Here, index: ElementIdx, flow: Option<FlowIdx>) -> Step<()> {
        let Some(node) = here.node(index) else { return Ok(()) };
        match &node.kind {
            Kind::Job(spec) | Kind::End(End::Job(spec)) => self.enter_job(here, index, node, spec),
            Kind::Scope(_) => self.enter_scope(here, index, node),
            Kind::CatchMessage(_) | Kind::CatchTimer(_) | Kind::EventGateway => self.enter_wait(here, index, node),
            Kind::Start(Start::None | Start::Message(_)) | Kind::Pass => self.pass(here, node, &Variables::new()),
            Kind::Script { expression, result } => {
                let inputs = self.map_inputs(here, node)?;
                let value = self.evaluate_json(expression, here.place_with(&inputs))?;
                self.pass_with(here, node, inputs, &vec![(result.clone(), value)])
            }
            Kind::Exclusive { default } => self.choose(here, node, *default),
            Kind::Parallel => Ok(self.join(here, node, flow)?),
            Kind::End(End::None) => Ok(self.end(here, node)?),
            Kind::End(End::Terminate) => Ok(self.end_scope_by_force(here, node)?),
            Kind::End(End::Error { code }) => {
                let code = self.evaluate_text(code, here.place())?;
                self.throw_from(here, node, &code)
            }
            // A boundary event has no incoming flow; its trigger leaves it.
            Kind::Boundary(_) => Ok(()),
        }
    }

    fn enter_job(&mut self, here: &Here, index: ElementIdx, node: &Node, spec: &JobSpec) -> Step<()> {
        let inputs = self.map_inputs(here, node)?;
        let job = self.new_job(spec, here.place_with(&inputs))?;
        let plans = self.plan_boundaries(here, node)?;
        let key = self.draft.next_key();
        let job = self.insert_job(here, index, node, key, job)?;
        let attached = self.attach(here, key, plans)?;
        self.insert_element(here, index, key, job, attached, &inputs);
        Ok(())
    }

    fn new_job(&mut self, spec: &JobSpec, place: Place<'_>) -> Step<NewJob> {
        let job_type = self.evaluate_name(&spec.job_type, "the job type", place)?;
        let retries = self.evaluate_integer(&spec.retries, place)?;
        let priority = spec.priority.as_ref().map_or(Ok(0), |text| self.evaluate_integer(text, place))?;
        let mut headers = Vec::with_capacity(spec.computed_headers.len());
        for (name, text) in &spec.computed_headers {
            headers.push((name, self.evaluate_header(text, place)?));
        }
        Ok(NewJob { job_type, retries, priority, headers: headers_json(&headers) })
    }

    /// A header's value is always a string; what is no string (a list of groups, say) becomes its JSON text.
    fn evaluate_header(&mut self, text: &wf_model::Text, place: Place<'_>) -> Step<Json> {
        match text {
            wf_model::Text::Literal(literal) => Ok(json_string(literal)),
            wf_model::Text::Feel(expression) => {
                let json = self.evaluate_json(expression, place)?;
                Ok(if json.starts_with('"') { json } else { json_string(&json) })
            }
        }
    }

    fn insert_job(&mut self, here: &Here, index: ElementIdx, node: &Node, element_key: Key, new: NewJob) -> Run<Key> {
        let tenant = self.tenant_of(here.scope.root)?;
        let lineage = self.next_lineage(here.scope.key, index, node)?;
        let key = self.draft.next_key();
        let job = self.draft.insert_new(Job {
            key,
            element_key,
            scope: here.scope.key,
            root: here.scope.root,
            tenant,
            definition: here.scope.definition,
            element: index,
            job_type: new.job_type,
            state: JobState::Ready,
            retries: new.retries,
            priority: new.priority,
            worker: Text::from(""),
            lease: 0,
            due: 0,
            headers: new.headers,
            lineage,
            steps: 0,
            completion: None,
        });
        let created = What::JobCreated { job_type: job.job_type.clone(), element_id: node.id.clone() };
        self.draft.emit(here.scope.root, key, created);
        Ok(key)
    }

    /// The same for the n-th entry of this element, whatever keys the store gives.
    fn next_lineage(&mut self, scope: Key, index: ElementIdx, node: &Node) -> Run<[u8; 16]> {
        let mut lineage = [0; 16];
        self.change_scope(scope, |scope| {
            let occurrence = count_visit(&mut scope.visits, index);
            lineage = ids::lineage(&scope.lineage, &node.id, u64::from(occurrence));
        })?;
        Ok(lineage)
    }

    fn enter_scope(&mut self, here: &Here, index: ElementIdx, node: &Node) -> Step<()> {
        let inputs = self.map_inputs(here, node)?;
        let plans = self.plan_boundaries(here, node)?;
        let lineage = self.next_lineage(here.scope.key, index, node)?;
        let key = self.draft.next_key();
        self.draft.insert_new(Scope {
            key,
            root: here.scope.root,
            parent: here.scope.key,
            definition: here.scope.definition,
            element: index,
            state: ScopeState::Active,
            active: 1,
            joins: Vec::new(),
            visits: Vec::new(),
            lineage,
            after: After::Nothing,
            instance: None,
        });
        let attached = self.attach(here, key, plans)?;
        self.insert_element(here, index, key, 0, attached, &inputs);
        self.draft.emit(here.scope.root, key, What::ElementActivated { element_id: node.id.clone() });
        if let Kind::Scope(wf_model::Scope { none_start: Some(start), .. }) = &node.kind {
            self.push(Task::Arrive { scope: key, element: *start, flow: None });
        }
        Ok(())
    }

    fn enter_wait(&mut self, here: &Here, index: ElementIdx, node: &Node) -> Step<()> {
        let inputs = self.map_inputs(here, node)?;
        let mut plans = self.plan_own(here, index, node, &inputs)?;
        plans.extend(self.plan_boundaries(here, node)?);
        let key = self.draft.next_key();
        let attached = self.attach(here, key, plans)?;
        self.insert_element(here, index, key, 0, attached, &inputs);
        self.draft.emit(here.scope.root, key, What::ElementActivated { element_id: node.id.clone() });
        Ok(())
    }

    fn insert_element(
        &mut self,
        here: &Here,
        element: ElementIdx,
        key: Key,
        job: Key,
        attached: Vec<Attached>,
        locals: &Variables,
    ) {
        self.draft.insert_new(Element {
            key,
            scope: here.scope.key,
            root: here.scope.root,
            element,
            phase: Phase::Active,
            job,
            incident: 0,
            has_locals: !locals.is_empty(),
            attached,
        });
        for (name, value) in locals {
            self.draft.insert_new(Variable { scope: key, name: name.clone(), value: value.clone() });
        }
    }

    fn plan_own(&mut self, here: &Here, index: ElementIdx, node: &Node, inputs: &Variables) -> Step<Vec<Plan>> {
        let place = here.place_with(inputs);
        match &node.kind {
            Kind::CatchMessage(message) => Ok(vec![self.plan_message(message, index, place)?]),
            Kind::CatchTimer(timer) => Ok(vec![self.plan_timer(timer, index, place)?]),
            Kind::EventGateway => self.plan_branches(here, node),
            _ => Ok(Vec::new()),
        }
    }
}

/// Raises the element's count and returns it, from 1.
fn count_visit(visits: &mut Vec<(ElementIdx, u32)>, index: ElementIdx) -> u32 {
    match visits.binary_search_by_key(&index, |(element, _)| *element) {
        Ok(found) => visits.get_mut(found).map_or(1, |(_, count)| {
            *count = count.saturating_add(1);
            *count
        }),
        Err(place) => {
            visits.insert(place, (index, 1));
            1
        }
    }
}

fn over_budget() -> Halt {
    Halt::Incident(IncidentKind::Budget, format!("the instance took {INSTANCE_STEPS_MAX} steps; resolve to go on"))
}

fn headers_json(headers: &[(&Arc<str>, Json)]) -> Json {
    if headers.is_empty() {
        return Json::from("");
    }
    let members: Vec<String> = headers.iter().map(|(name, value)| format!("{}:{value}", json_string(name))).collect();
    format!("{{{}}}", members.join(",")).into()
}
