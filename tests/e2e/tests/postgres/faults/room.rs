//! The database's disk is full, and has room again.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::crash::started;

use super::{SOME, Server, withstands};

/// A small disk of its own, where the engine's database lies: what is full is not our disk.
struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    fn at(folder: &Path) -> SmallDisk {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=48m,mode=0777", "tmpfs"]).arg(folder);
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        assert!(is_mounted, "this test mounts a small disk (`mount -t tmpfs`), which needs root: run it as root");
        SmallDisk { folder: folder.to_owned() }
    }

    /// Nothing fits any more.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.folder.join("ballast")).expect("a file");
        let block = vec![1; 64 * 1024];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.folder.join("ballast")).expect("the ballast");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

/// Nothing is lost and nothing is half done; with room it goes on by itself.
#[test]
#[cfg(target_os = "linux")]
fn limits_the_databases_disk_is_full_and_has_room_again() {
    let mut server = Server::start();
    let folder = server.cluster.writable_folder("small");
    let disk = SmallDisk::at(&folder);
    let place = server.cluster.writable_folder("small/tablespace");
    server.cluster.execute(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    server.cluster.execute("CREATE DATABASE small TEMPLATE template0 TABLESPACE small");
    server.url = server.cluster.url("small");
    withstands(&server.setup(), 0xF011, |setup, world| {
        let node = started(setup, world)?;
        for _ in 0..2 {
            world.goes_on(SOME)?;
            disk.fill();
            world.is_refused(SOME)?;
            disk.make_room();
        }
        world.goes_on(SOME)?;
        Ok(vec![node])
    });
    // The server's own folder goes before the disk does.
    server.cluster.stop_fast();
}
