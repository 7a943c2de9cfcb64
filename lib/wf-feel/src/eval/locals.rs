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
        self.step(self.locals.len() / 16)?;
        for local in self.locals.iter().rev() {
            match local {
                Local::Name(bound, value) if bound.as_ref() == name => return Ok(value.clone()),
                Local::Name(..) => {}
                Local::Entries(context) => {
                    if let Some(value) = context.entry(name) {
                        return Ok(value.clone());
                    }
                }
            }
        }
        Ok(self.scope.get(name).unwrap_or(Value::Null))
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
