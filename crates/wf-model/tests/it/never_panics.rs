//! Whatever the bytes, the compiler answers, and without work out of proportion to them.
//! Knows no rule of BPMN. The rules are in `elements.rs` and `structure.rs`.

use proptest::prelude::*;
use wf_model::compile;

fn corpus() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "bpmn")).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

proptest! {
    #[test]
    fn on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = compile(&bytes);
    }

    /// Pieces of a real file lost, doubled and overwritten.
    #[test]
    fn on_damaged_files(
        file in 0..15_usize,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0..60_usize, 0..4_u8, any::<u8>()), 1..6),
    ) {
        let mut bytes = corpus().swap_remove(file);
        for (at, length, how, byte) in cuts {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            match how {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..at, piece)),
                2 => bytes[at] = byte,
                _ => drop(bytes.splice(at..at, *b"\"")),
            }
        }
        let _ = compile(&bytes);
    }

    /// Well-formed, but tags and references exchanged: this reaches the rules, where damage seldom gets past the parser.
    #[test]
    fn on_exchanged_words(file in 0..15_usize, swaps in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..8)) {
        let text = String::from_utf8(corpus().swap_remove(file)).unwrap();
        let mut words: Vec<&str> = text.split('"').collect();
        for (one, other) in swaps {
            let values = words.len() / 2;
            words.swap(one.index(values) * 2 + 1, other.index(values) * 2 + 1);
        }
        let _ = compile(words.join("\"").as_bytes());
    }
}

/// Each of these would cost a naive reader its stack, minutes or gigabytes.
#[test]
fn on_files_made_to_hurt() {
    let bpmn = r#"xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL""#;
    let process = |body: &str| {
        format!(r#"<definitions {bpmn}><process id="p" isExecutable="true">{body}</process></definitions>"#)
    };
    let attributes: String = (0..400_000).map(|n| format!(" a{n}=''")).collect();
    let namespaces: String = (0..2000).map(|n| format!("<a xmlns:n{n}='{n}'/>")).collect();
    let tasks = (0..20_000).map(|n| format!(r#"<receiveTask id="t{n}" messageRef="m"/>"#)).collect::<String>();
    let name = "n".repeat(100_000);
    let files = [
        "<a>".repeat(1_000_000),
        process(&"<subProcess id='s'>".repeat(200_000)),
        format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000)),
        format!("<a{attributes}/>"),
        process(&namespaces),
        "<a/>".repeat(1_000_000),
        process(&format!("<sequenceFlow id='f'><conditionExpression>={}", "(".repeat(1_000_000)))
            .replace("</process>", "</conditionExpression></sequenceFlow></process>"),
        format!(
            r#"<definitions {bpmn} xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"><message id="m" name="{name}"><extensionElements><zeebe:subscription correlationKey="=k"/></extensionElements></message><process id="p" isExecutable="true"><startEvent id="s"/>{tasks}</process></definitions>"#
        ),
        format!(
            r#"<definitions {bpmn}><process id="{name}" isExecutable="true">{}</process></definitions>"#,
            "<task/>".repeat(100_000)
        ),
    ];
    for file in files {
        let problems = compile(file.as_bytes()).unwrap_err();
        assert!(problems.len() <= 1000, "{}", problems.len());
    }
}

/// Deep, but within the limit, and executed.
#[test]
fn on_nested_sub_processes() {
    let levels = 200;
    let open: String = (0..levels).map(|n| format!(r#"<subProcess id="u{n}"><startEvent id="s{n}"/>"#)).collect();
    let file = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p" isExecutable="true"><startEvent id="s"/>{open}{}</process></definitions>"#,
        "</subProcess>".repeat(levels)
    );
    assert_eq!(compile(file.as_bytes()).unwrap()[0].elements.len(), 2 + 2 * levels);
}
