//! Small models, each a row `name, XML of the process`, and what the compiler says to them.
//! The XML starts on line 2, after a none start event `s`. Next: `elements.rs`.

use expect_test::Expect;
use wf_model::{Process, compile};

pub(crate) const HEAD: &str = concat!(
    r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL""#,
    r#" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:camunda="http://camunda.org/schema/1.0/bpmn">"#,
    r#"<message id="paid" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>"#,
    r#"<message id="same" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>"#,
    r#"<message id="keyless" name="paid"/><message id="nameless"/><message id="computed" name="=a"/>"#,
    r#"<error id="e1" errorCode="1"/><error id="e1again" errorCode="1"/><error id="codeless"/><error id="feel" errorCode="=a"/>"#,
);

pub(crate) fn compiled(body: &str) -> Result<Process, String> {
    let model = format!("{HEAD}<process id=\"p\" isExecutable=\"true\">\n{body}</process></definitions>");
    match compile(model.as_bytes()) {
        Ok(mut processes) => Ok(processes.remove(0)),
        Err(problems) => Err(problems.iter().map(|problem| format!("    {}\n", shown(&problem.to_string()))).collect()),
    }
}

/// What FEEL says to a broken expression is its own affair.
fn shown(problem: &str) -> String {
    let of_feel = "is not valid FEEL: ";
    problem.split_once(of_feel).map_or(problem.into(), |(before, _)| format!("{before}{of_feel}…"))
}

/// Each name with the problems found, `executed` where there is none.
pub(crate) fn check_processes<N: AsRef<str>, M: AsRef<str>>(rows: &[(N, M)], expected: Expect) {
    let verdict = |body: &str| compiled(body).map_or_else(|problems| problems, |_| "    executed\n".into());
    let rows = rows.iter().map(|(name, body)| format!("{}\n{}", name.as_ref(), verdict(body.as_ref())));
    expected.assert_eq(&rows.collect::<String>());
}

pub(crate) fn check<N: AsRef<str>, M: AsRef<str>>(rows: &[(N, M)], expected: Expect) {
    let started: Vec<_> =
        rows.iter().map(|(name, body)| (name, format!(r#"<startEvent id="s"/>{}"#, body.as_ref()))).collect();
    check_processes(&started, expected);
}
