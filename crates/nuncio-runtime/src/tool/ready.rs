//! A tool with its schema compiled.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use super::{Tool, ToolError, ToolSpec};

/// A tool whose schema has been read, so that arguments are checked before each call.
#[derive(Clone)]
pub struct ReadyTool {
    tool: Arc<dyn Tool>,
    validator: Arc<Validator>,
}

impl fmt::Debug for ReadyTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadyTool").field(&self.spec().name).finish()
    }
}

/// How many faults of arguments the model is told of at once.
const TOLD: usize = 5;

impl ReadyTool {
    /// Reads a tool's name and schema.
    ///
    /// # Errors
    /// [`ToolError`] that names the tool and what is wrong with it.
    pub fn new(tool: Arc<dyn Tool>) -> Result<Self, ToolError> {
        let spec = tool.spec();
        if !ToolSpec::is_name(&spec.name) {
            return Err(ToolError::new(format!(
                "\"{}\" is no name for a tool: 1 to 64 letters, digits, `_` and `-`",
                spec.name
            )));
        }
        let validator = jsonschema::validator_for(&spec.input_schema).map_err(|error| {
            let name = &spec.name;
            ToolError::new(format!(
                "the schema of tool {name} is no JSON Schema: {error}"
            ))
        })?;
        Ok(Self {
            validator: Arc::new(validator),
            tool,
        })
    }

    /// Another tool with the same schema in its place.
    pub(crate) fn within(&self, tool: Arc<dyn Tool>) -> Self {
        Self {
            tool,
            validator: Arc::clone(&self.validator),
        }
    }

    /// What the tool says about itself.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The tool.
    pub fn tool(&self) -> &dyn Tool {
        self.tool.as_ref()
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// [`ToolError`] that names each wrong place.
    pub fn check(&self, args: &Value) -> Result<(), ToolError> {
        faults(&self.validator, args).map_err(|faults| {
            let name = &self.spec().name;
            ToolError::new(format!(
                "the arguments of {name} do not fit its schema: {faults}"
            ))
        })
    }
}

/// What is wrong with a value, in one line.
pub(crate) fn faults(validator: &Validator, value: &Value) -> Result<(), String> {
    let faults: Vec<_> = validator
        .iter_errors(value)
        .take(TOLD)
        .map(|error| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("at {path}: {error}"),
        })
        .collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults.join("; ")),
    }
}
