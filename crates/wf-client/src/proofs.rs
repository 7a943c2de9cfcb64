//! Proofs over the server's store: it answers line by line while they go on, for as long as they take.
//! What the lines mean is the server's OpenAPI's to say.

use reqwest::Method;
use serde::de::DeserializeOwned;

use crate::client::{Client, cause};
use crate::error::{ClientError, problem};

impl Client {
    /// `kind`: `replay`, `tables` or `audit`. Sent once; `each` gets every line.
    pub async fn proof<T: DeserializeOwned>(
        &self,
        kind: &str,
        query: &[(&str, String)],
        mut each: impl FnMut(T),
    ) -> Result<(), ClientError> {
        let url = self.url(&["api", "v1", "proofs", kind], query);
        let no_answer = |error: &reqwest::Error| ClientError::NoAnswer {
            url: url.origin().ascii_serialization(),
            attempts: 1,
            reason: cause(error),
        };
        let mut response = self.stream(Method::GET, url.clone()).await.map_err(|error| no_answer(&error))?;
        let status = response.status();
        if !status.is_success() {
            let body = response.bytes().await.map_err(|error| no_answer(&error))?;
            return Err(ClientError::Refused(Box::new(problem(status.as_u16(), &body))));
        }
        let mut rest = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(&error))? {
            rest.extend_from_slice(&chunk);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                each(serde_json::from_slice(&line).map_err(|error| ClientError::Malformed(error.to_string()))?);
            }
        }
        Ok(())
    }
}
