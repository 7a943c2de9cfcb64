//! placeholder
use crate::cli::DemoArgs;
use crate::output::Done;
pub async fn run(_args: DemoArgs) -> Done {
    Ok(())
}
