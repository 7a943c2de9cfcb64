//! The cluster that a whole test run shares: started by `cargo xtask test`, which reads its URL from the first line and
//! ends it by closing its input.

use servers::Options;

fn main() {
    // Nobody asks this one what a crash leaves behind, so it need not wait for a disk.
    let options = ["fsync", "full_page_writes", "synchronous_commit"]
        .into_iter()
        .fold(Options::default(), |options, name| options.set(name, "off"));
    let cluster = options.set("max_connections", "500").set("shared_buffers", "128MB").start();
    println!("{}", cluster.url("").trim_end_matches('/'));
    let _ = std::io::stdin().read_line(&mut String::new());
}
