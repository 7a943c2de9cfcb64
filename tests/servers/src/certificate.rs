//! A certificate for 127.0.0.1 and localhost, signed by nobody but itself.

use crate::programs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes `server.crt` and `server.key`; what comes back is the certificate, for clients to trust.
pub fn write(folder: &Path) -> String {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let certificate = made.cert.pem();
    for (name, text) in [("server.crt", &certificate), ("server.key", &made.signing_key.serialize_pem())] {
        let path = folder.join(name);
        // PostgreSQL takes no key that others may read.
        let file = std::fs::File::options().create_new(true).write(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
        programs::hand_over(&path);
    }
    certificate
}
