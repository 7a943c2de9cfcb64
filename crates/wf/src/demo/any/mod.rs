//! placeholder
use crate::cli::DemoArgs;
use crate::output::Done;
pub async fn run(_path: &std::path::Path, _args: &DemoArgs) -> Done {
    Ok(())
}
