//! The README, done as it is written: the tour's commands in one shell, and the three that `wf dev` prints.
//! What the prose promises is compared with what comes out.

use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::api::text;
use e2e::models::file;
use e2e::node::{Node, read_until, run, wf};
use e2e::{Process, wf_binary};
use serde_json::Value;
use tempfile::TempDir;

const DOCUMENTED: &str = "http://127.0.0.1:8080";

/// (what stands in the command, what its output must have, how often), in the order of the tour.
const PROMISES: [(&str, &[(&str, usize)]); 12] = [
    ("@samples/order.bpmn", &[("\"processDefinitionId\":\"order\",\"version\":1", 1)]),
    ("curl -si", &[("HTTP/1.1 201", 1), ("idempotent-replayed", 0), ("\"state\":\"ACTIVE\"", 1)]),
    ("curl -si", &[("HTTP/1.1 201", 1), ("idempotent-replayed: true", 1)]),
    ("O-4712", &[("\"status\":409", 1), ("\"code\":\"idempotency-conflict\"", 1)]),
    ("jobs/activate", &[("\"idempotencyKey\":\"wf-job-", 1)]),
    ("{\"charged\": true}", &[("\"duplicate\":false", 1), ("\"duplicate\":true", 1)]),
    ("worker-2", &[("\"code\":\"job-lease-lost\"", 1), ("\"retry\":false", 1)]),
    ("carrier-77", &[("\"duplicate\":false", 1), ("\"duplicate\":true", 1), ("processInstanceKey", 1)]),
    ("wf worker", &[("1 completed", 1)]),
    ("wf instances", &[("order   ┆       1 ┆ COMPLETED", 1), ("conflicts 1", 1), ("\"eventId\":\"ev-1-", 3)]),
    (
        "wf debug explain",
        &[
            ("REPLAY /api", 1),
            ("CONFLICT /api", 1),
            ("JOB complete-job", 1),
            ("MESSAGE publish-message", 1),
            ("leased by", 2),
        ],
    ),
    ("wf debug replay", &[("identical up to position", 1), ("rows in the tables agree", 1), ("complete: ", 1)]),
];

#[test]
fn the_tour_does_what_the_readme_says() {
    let folder = at_hand();
    let node = dev(folder.path());
    let readme = file("README.md");
    let blocks = blocks(section(&readme, "## A tour in five minutes"));
    assert!(blocks.len() >= PROMISES.len(), "{} blocks", blocks.len());
    let outputs = play(&node, folder.path(), &blocks);
    let done: Vec<(&String, &String)> = blocks.iter().zip(&outputs).collect();
    let mut from = 0;
    for (command, promised) in PROMISES {
        let place = done[from..].iter().position(|(block, _)| block.contains(command));
        let place = from + place.unwrap_or_else(|| panic!("no command with {command} after block {from}"));
        for (wanted, times) in promised {
            let found = done[place].1.matches(wanted).count();
            assert_eq!(found, *times, "{wanted} in the output of\n{}\n{}", done[place].0, done[place].1);
        }
        from = place + 1;
    }
    assert_eq!(body(&outputs[1]), body(&outputs[2]), "the same bytes");
    after_a_kill(node, folder.path(), &blocks[1], body(&outputs[1]));
    readable(&readme, folder.path());
}

/// `Kill the server at any point, start it again, and repeat any request of the tour.`
fn after_a_kill(node: Node, folder: &Path, block: &str, first: &str) {
    node.kill();
    let node = dev(folder);
    let again = play(&node, folder, &[block.to_owned()]);
    assert!(again[0].contains("idempotent-replayed: true"), "{}", again[0]);
    assert_eq!(body(&again[0]), first);
    assert_eq!(node.api.all("/api/v1/instances").len(), 1);
}

/// The query that the README shows for the store's file.
fn readable(readme: &str, folder: &Path) {
    let (_, behind) = readme.split_once("sqlite3 -readonly wf-data/wf.db '").expect("a query");
    let (query, _) = behind.split_once('\'').expect("its end");
    let connection = e2e::database::open(&folder.join("wf-data/wf.db"));
    let mut statement = connection.prepare(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let rows = statement.query_map([], |_| Ok(())).expect("rows");
    assert_eq!(rows.count(), 1);
}

/// Issue 2: `wf dev` prints where it listens and three commands to try, which work as they stand.
#[test]
fn the_commands_that_dev_prints_work() {
    let folder = at_hand();
    let mut command = dev_command(folder.path());
    let mut process = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut stdout = BufReader::new(process.stdout().expect("a pipe"));
    let ready = read_until(&mut stdout, "listening on ").expect("the ready line");
    let hints = read_until(&mut stdout, "Ctrl-C").expect("the hints");
    let node = Node::at(process, &ready);
    let commands: Vec<String> = hints.lines().filter(|line| line.contains("curl ")).map(str::to_owned).collect();
    assert_eq!(commands.len(), 3, "{hints}");
    let outputs = play(&node, folder.path(), &commands);
    let job: Value = serde_json::from_str(&outputs[2]).unwrap_or_else(|error| panic!("{error}: {}", outputs[2]));
    assert_eq!(job["jobs"][0]["type"], "charge-card");
    assert_eq!(node.api.state(&text(&job["jobs"][0]["processInstanceKey"])), "ACTIVE");
}

/// A folder as somebody has it who cloned the repository and has `wf` at hand.
fn at_hand() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["samples", "bin"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    std::fs::write(folder.path().join("samples/order.bpmn"), file("samples/order.bpmn")).expect("a file");
    std::os::unix::fs::symlink(wf_binary(), folder.path().join("bin/wf")).expect("a link");
    folder
}

fn dev_command(folder: &Path) -> Command {
    let mut command = wf();
    command.args(["dev", "--listen", "127.0.0.1:0"]).current_dir(folder);
    command
}

fn dev(folder: &Path) -> Node {
    let mut process = Process::start(dev_command(folder).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut stdout = BufReader::new(process.stdout().expect("a pipe"));
    let said = read_until(&mut stdout, "Ctrl-C").expect("the hints");
    let (ready, _) = said.split_once("\n").expect("a line");
    Node::at(process, ready)
}

fn section<'r>(readme: &'r str, title: &str) -> &'r str {
    let (_, behind) = readme.split_once(title).unwrap_or_else(|| panic!("no section {title}"));
    behind.split_once("\n## ").map_or(behind, |(section, _)| section)
}

/// What stands between ```sh and ```.
fn blocks(section: &str) -> Vec<String> {
    let behind = section.split("```sh\n").skip(1);
    behind.map(|text| text.split_once("```").map_or(text, |(block, _)| block).to_owned()).collect()
}

/// One shell for all blocks, as a reader has it; the output of each, with what it said on stderr.
fn play(node: &Node, folder: &Path, blocks: &[String]) -> Vec<String> {
    const MARK: &str = "\n--- next ---\n";
    let script = blocks.join(&format!("\nprintf '{}'\n", MARK.replace('\n', "\\n")));
    let script = format!("exec 2>&1\n{}", script.replace(DOCUMENTED, &node.url));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.join("bin").display());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script]).current_dir(folder).env("PATH", path).env("WF_SERVER", &node.url);
    let ended = run(&mut bash).expect(0);
    let outputs: Vec<String> = ended.stdout.split(MARK).map(str::to_owned).collect();
    assert_eq!(outputs.len(), blocks.len(), "{outputs:#?}");
    outputs
}

/// Behind the head of a `curl -i`.
fn body(output: &str) -> &str {
    output.split_once("\r\n\r\n").map_or(output, |(_, body)| body)
}
