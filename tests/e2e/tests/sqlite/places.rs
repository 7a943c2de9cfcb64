//! The places at which the crash matrix lets a process die are those of the code, whatever store it runs on.

use std::collections::BTreeSet;
use std::path::Path;

use wf_store::failpoint::PLACES;

/// A failpoint that is put into the code and not into the list would be forgotten by the matrix, and the other way round.
#[test]
fn every_place_of_the_code_is_in_the_matrix_and_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut hit = BTreeSet::new();
    for folder in ["crates", "lib"] {
        collect(&root.join(folder), &mut hit);
    }
    let listed: BTreeSet<String> = PLACES.iter().map(|place| place.name.to_owned()).collect();
    assert_eq!(hit, listed);
    assert_eq!(listed.len(), PLACES.len());
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let missing: Vec<&String> = listed.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert_eq!(missing, Vec::<&String>::new(), "docs/reliability.md has a line for each");
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let hits = text.split("failpoint::hit(\"").skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(hits.map(str::to_owned));
        }
    }
}
