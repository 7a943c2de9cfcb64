//! Timers, literals in the place of expressions, and what a job is told.
//! Hostile input is `never_panics.rs`.

use expect_test::expect;
use wf_model::{Kind, Text};

use crate::support::{check, compiled};

/// What others ask for by name must be something that they can ask for.
#[test]
fn names_that_no_request_may_hold() {
    let (long, longest) = ("n".repeat(256), "n".repeat(255));
    let job = |name: &str| {
        format!(
            r#"<serviceTask id="x"><extensionElements><zeebe:taskDefinition type="{name}"/></extensionElements></serviceTask>"#
        )
    };
    let rows =
        [("long", job(&long)), ("longest", job(&longest)), ("a line's end", job("a&#10;b")), ("computed", job("=a"))];
    check(
        &rows,
        expect![[r#"
            long
                line 2, x: the job type has more than 255 bytes or holds control characters
            longest
                executed
            a line's end
                line 2, x: the job type has more than 255 bytes or holds control characters
            computed
                executed
        "#]],
    );
}

#[test]
fn timers() {
    let catch = |time: &str| {
        format!(
            r#"<intermediateCatchEvent id="x"><timerEventDefinition>{time}</timerEventDefinition></intermediateCatchEvent>"#
        )
    };
    let beside = |cycle: &str| {
        format!(
            r#"<task id="t"/><boundaryEvent id="x" attachedToRef="t" cancelActivity="false"><timerEventDefinition><timeCycle>{cycle}</timeCycle></timerEventDefinition></boundaryEvent>"#
        )
    };
    let whole = [
        "",
        "<timeDuration/>",
        "<timeCycle>R/P1D</timeCycle>",
        "<timeDuration>P1D</timeDuration><timeDate>=a</timeDate>",
        "<timeDuration>= a +</timeDuration>",
    ];
    let durations = "P1Y2M3W4DT5H6M7.5S P99999Y PT0S P PT P1 1D P1H PT1M1H PT1.5H -PT1S";
    let dates = "2028-02-29T12:00Z 2030-10-10T12:00:00.5+02:00[Europe/Berlin] 2030-10-10T12:00:00 2030-10-10 \
                 2030-02-29T12:00:00Z 2030-1-10T12:00:00Z 2030-10-10T24:00:00Z 2030-10-10T12:00:00+2";
    let cycles =
        "R/PT1M R3/PT1M R0/PT1M R/PT0S R/PT0.0001S R99999999999/PT1S PT1M @daily R/2030-10-10T12:00:00Z/P1D R/";
    let mut rows: Vec<(&str, String)> =
        whole.iter().map(|time| (if time.is_empty() { "no time" } else { time }, catch(time))).collect();
    rows.extend(durations.split(' ').map(|text| (text, catch(&format!("<timeDuration> {text} </timeDuration>")))));
    rows.extend(dates.split(' ').map(|text| (text, catch(&format!("<timeDate>{text}</timeDate>")))));
    rows.extend(cycles.split(' ').map(|text| (text, beside(text))));
    check(
        &rows,
        expect![[r#"
            no time
                line 2, x: the timer needs a timeDuration, timeDate or timeCycle
            <timeDuration/>
                line 2, x: the timeDuration is empty
            <timeCycle>R/P1D</timeCycle>
                line 2, x: a timeCycle repeats: only a non-interrupting boundary event has one
            <timeDuration>P1D</timeDuration><timeDate>=a</timeDate>
                line 2, x: the timer has more than one time
            <timeDuration>= a +</timeDuration>
                line 2, x: the timer is not valid FEEL: …
            P1Y2M3W4DT5H6M7.5S
                executed
            P99999Y
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P99999Y
            PT0S
                executed
            P
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P
            PT
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT
            P1
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P1
            1D
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not 1D
            P1H
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P1H
            PT1M1H
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT1M1H
            PT1.5H
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT1.5H
            -PT1S
                line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not -PT1S
            2028-02-29T12:00Z
                executed
            2030-10-10T12:00:00.5+02:00[Europe/Berlin]
                executed
            2030-10-10T12:00:00
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T12:00:00
            2030-10-10
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10
            2030-02-29T12:00:00Z
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-02-29T12:00:00Z
            2030-1-10T12:00:00Z
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-1-10T12:00:00Z
            2030-10-10T24:00:00Z
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T24:00:00Z
            2030-10-10T12:00:00+2
                line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T12:00:00+2
            R/PT1M
                executed
            R3/PT1M
                executed
            R0/PT1M
                line 2, x: a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H, not R0/PT1M
            R/PT0S
                line 2, x: a cycle's duration must be at least a millisecond, not R/PT0S
            R/PT0.0001S
                line 2, x: a cycle's duration must be at least a millisecond, not R/PT0.0001S
            R99999999999/PT1S
                line 2, x: a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H, not R99999999999/PT1S
            PT1M
                line 2, x: a cycle is written as R[times]/duration (cron is not executed yet), not PT1M
            @daily
                line 2, x: a cycle is written as R[times]/duration (cron is not executed yet), not @daily
            R/2030-10-10T12:00:00Z/P1D
                line 2, x: a cycle is written as R[times]/duration (a start or end is not executed yet), not R/2030-10-10T12:00:00Z/P1D
            R/
                line 2, x: a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H, not R/
        "#]],
    );
}

/// A literal where the engine needs an expression stands for itself.
#[test]
fn literals_become_expressions() {
    let body = r#"<startEvent id="s"/>
        <scriptTask id="number"><extensionElements><zeebe:script expression="-1.50" resultVariable="a"/></extensionElements></scriptTask>
        <scriptTask id="text"><extensionElements><zeebe:script expression="say &quot;hi&quot; \ 1" resultVariable="a"/></extensionElements></scriptTask>"#;
    let process = compiled(body).unwrap();
    let script = |id: &str| match &process.elements[process.by_id[id] as usize].kind {
        Kind::Script { expression, .. } => expression.source().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(["-1.50", r#""say \"hi\" \\ 1""#], [script("number").as_str(), script("text").as_str()]);
}

/// A user task is a job whose headers carry its assignment, with and without `zeebe:userTask`.
#[test]
fn user_task_headers() {
    let extensions = r#"<zeebe:assignmentDefinition assignee="=a" candidateGroups="x, y" candidateUsers="=b"/>
        <zeebe:taskSchedule dueDate="2030-01-01T00:00:00Z" followUpDate="=c"/><zeebe:formDefinition formKey="f"/>
        <zeebe:priorityDefinition priority="7"/><zeebe:taskHeaders><zeebe:header key="k" value=""/></zeebe:taskHeaders>"#;
    let shown = |text: &Text| match text {
        Text::Literal(text) => text.to_string(),
        Text::Feel(expression) => format!("={}", expression.source()),
    };
    let headers = |marker: &str| {
        let body = format!(
            r#"<startEvent id="s"/><userTask id="u"><extensionElements>{marker}{extensions}</extensionElements></userTask>"#
        );
        let process = compiled(&body).unwrap();
        let Kind::Job(job) = &process.elements[process.by_id["u"] as usize].kind else { panic!("no job") };
        let mut out = format!("{} {} {:?}\n", shown(&job.job_type), shown(&job.retries), job.headers);
        job.computed_headers.iter().for_each(|(key, value)| out.push_str(&format!("{key} {}\n", shown(value))));
        out
    };
    assert_eq!(headers(""), headers("<zeebe:userTask/>"));
    expect![[r#"
        io.camunda.zeebe:userTask 1 [("k", "")]
        io.camunda.zeebe:assignee =a
        io.camunda.zeebe:candidateGroups =["x","y"]
        io.camunda.zeebe:candidateUsers =b
        io.camunda.zeebe:dueDate 2030-01-01T00:00:00Z
        io.camunda.zeebe:followUpDate =c
        io.camunda.zeebe:formKey f
        io.camunda.zeebe:priority 7
    "#]]
    .assert_eq(&headers(""));
}

/// The process gives its jobs a priority, a task may have its own.
#[test]
fn job_priority() {
    let process = compiled(
        r#"<extensionElements><zeebe:jobPriorityDefinition priority="=a"/></extensionElements><startEvent id="s"/>
        <serviceTask id="x"><extensionElements><zeebe:taskDefinition type="a"/></extensionElements></serviceTask>
        <serviceTask id="y"><extensionElements><zeebe:taskDefinition type="a"/><zeebe:jobPriorityDefinition priority="-5"/></extensionElements></serviceTask>"#,
    )
    .unwrap();
    let priority = |id: &str| match &process.elements[process.by_id[id] as usize].kind {
        Kind::Job(job) => job.priority.as_ref(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(priority("x"), Some(Text::Feel(_))));
    assert!(matches!(priority("y"), Some(Text::Literal(text)) if &**text == "-5"));
}
