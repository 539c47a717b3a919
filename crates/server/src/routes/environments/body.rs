//! Reads requests with secret values in them: what is wrong is told without a value, and the body
//! is wiped when it was read.

use axum::extract::{FromRequest, Request};
use model::secret::Secret;
use serde_json::Value;

use crate::body::{Body, twice};
use crate::extract;
use crate::problem::Problem;
use crate::routes::secrets;

/// A JSON body that may have secret values.
pub(crate) struct Whispered<T>(pub(crate) T);

impl<S: Send + Sync, T: Body> FromRequest<S> for Whispered<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        extract::media_type(request.headers(), &["application/json"])?;
        let body = secrets::whole(request).await?;
        let mut tree: Value =
            serde_json::from_slice(body.expose()).map_err(|error| extract::not_json(&error))?;
        let mut faults = T::faults(&tree);
        wipe(&mut tree);
        faults.extend(twice(body.expose()));
        if !faults.is_empty() {
            return Err(Problem::shape(faults));
        }
        serde_json::from_slice(body.expose())
            .map(Self)
            .map_err(|error| {
                // Its own words may repeat a value.
                let (line, column) = (error.line(), error.column());
                Problem::body(format!(
                    "something is not as it should be at line {line} column {column}"
                ))
            })
    }
}

/// Wipes every text of a tree.
fn wipe(tree: &mut Value) {
    match tree {
        Value::String(text) => drop(Secret::from_text(std::mem::take(text))),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(fields) => fields.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
