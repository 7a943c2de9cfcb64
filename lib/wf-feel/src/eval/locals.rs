//! Names that the expression itself binds: loop variables, entries of a context being built, the item of a filter.
//! It knows no scope of the caller beyond asking it last.
//! Next: back to `eval`.

use std::sync::Arc;

use super::{Outcome, Run};
use crate::expression::EvalError;
use crate::value::Value;

pub(crate) enum Local {
    Name(Arc<str>, Value),
    /// The entries of this context are names.
    Entries(Value),
}

impl Run<'_> {
    /// The innermost binding, else the caller's variable, else null.
    pub(super) fn name(&mut self, name: &str) -> Outcome {
        let (found, looked_at) = self.local(name);
        self.step(looked_at / 16)?;
        Ok(found.or_else(|| self.scope.get(name)).unwrap_or(Value::Null))
    }

    /// The innermost binding and how many names were looked at to find it.
    fn local(&self, name: &str) -> (Option<Value>, usize) {
        let mut looked_at = 0;
        for local in self.locals.iter().rev() {
            let found = match local {
                Local::Name(bound, value) => (bound.as_ref() == name).then_some(value),
                Local::Entries(context) => {
                    looked_at += context.as_context().map_or(0, <[_]>::len);
                    context.entry(name)
                }
            };
            looked_at += 1;
            if let Some(value) = found {
                return (Some(value.clone()), looked_at);
            }
        }
        (None, looked_at)
    }

    /// Runs `body` with some names bound and forgets them afterwards.
    pub(super) fn with<T>(
        &mut self,
        locals: impl IntoIterator<Item = Local>,
        body: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let before = self.locals.len();
        self.locals.extend(locals);
        let result = body(self);
        self.locals.truncate(before);
        result
    }
}
