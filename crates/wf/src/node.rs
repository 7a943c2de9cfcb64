//! placeholder
use crate::cli::{NodeArgs, ServerArgs};
use crate::config;
use crate::output::{Done, Failure};
pub fn dev(args: &NodeArgs) -> Done {
    let c = config::load(args).map_err(Failure::usage)?;
    crate::logs::init(c.log_format, "info");
    println!("{c:?}");
    Ok(())
}
pub fn server(args: &ServerArgs) -> Done {
    dev(&args.node)
}
