//! `wf deploy`: files to the server, all or none.

use crate::cli::DeployArgs;
use crate::output::{self, Done, Failure};

use super::connect;

pub async fn deploy(args: DeployArgs) -> Done {
    let mut files = Vec::new();
    for path in &args.files {
        let content = std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        files.push((name.unwrap_or_else(|| path.display().to_string()), content));
    }
    let deployment = connect(&args.remote)?.deploy_files(&files).await?;
    let rows = deployment.definitions.iter().map(|definition| {
        let state = if definition.duplicate { "unchanged" } else { "deployed" };
        vec![
            definition.process_definition_id.clone(),
            definition.version.to_string(),
            state.to_owned(),
            definition.resource_name.clone(),
            definition.key.clone(),
        ]
    });
    let rows = rows.collect();
    output::show(args.remote.output, &deployment, &["process", "version", "", "file", "key"], rows)
}
