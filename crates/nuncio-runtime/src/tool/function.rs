//! Tools made of Rust functions.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{IntoToolOutput, Tool, ToolCx, ToolError, ToolFuture, ToolSpec};

/// A tool that is a closure. The schema of its arguments comes from their type.
///
/// ```
/// use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// The number on the invoice.
///     number: String,
/// }
///
/// let find = FnTool::new("find_order", "Finds an order.", async |_cx: ToolCx, order: Order| {
///     Ok::<_, ToolError>(format!("order {} is on its way", order.number))
/// })
/// .read_only();
/// ```
pub struct FnTool<F, A> {
    spec: ToolSpec,
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A> fmt::Debug for FnTool<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl<F, A, Fut, R> FnTool<F, A>
where
    F: Fn(ToolCx, A) -> Fut + Send + Sync,
    A: DeserializeOwned + JsonSchema + Send,
    Fut: Future<Output = Result<R, ToolError>> + Send,
    R: IntoToolOutput,
{
    /// A tool of this name that calls this function.
    pub fn new(name: impl Into<String>, description: impl Into<String>, function: F) -> Self {
        Self {
            spec: ToolSpec::new(name, description, schema_of::<A>()),
            function,
            args: PhantomData,
        }
    }
}

impl<F, A> FnTool<F, A> {
    /// The same tool, which changes nothing and may be called beside others.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.read_only = true;
        self.spec.parallel = true;
        self
    }

    /// The same tool, which may be called beside others.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.spec.parallel = true;
        self
    }

    /// The same tool, each call of which somebody must approve.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.spec.needs_approval = true;
        self
    }

    /// The same tool, which may take so long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = timeout;
        self
    }
}

impl<F, A, Fut, R> Tool for FnTool<F, A>
where
    F: Fn(ToolCx, A) -> Fut + Send + Sync,
    A: DeserializeOwned + JsonSchema + Send,
    Fut: Future<Output = Result<R, ToolError>> + Send,
    R: IntoToolOutput,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = serde_json::from_value(args).map_err(|error| {
                ToolError::new(format!("the arguments cannot be read: {error}"))
            })?;
            (self.function)(cx, args).await?.into_output()
        })
    }
}

/// A schema without references, which some providers do not follow.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    schema.remove("$schema");
    schema.remove("title");
    if schema.get("properties").is_none() {
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(Default::default()));
    }
    schema.to_value()
}
