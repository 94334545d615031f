//! Parses model answers, for programs that talk to a model themselves.

use toold_adapters::parse::CallParser;
use toold_adapters::parse::known::KnownTools;
use toold_proto::call::ListTools;
use toold_proto::method::ToolsList;

use crate::{Client, ClientError};

impl Client {
    /// A parser for a model's answer, fed piece by piece. With `names`, calls of other tools are errors, and the daemon's
    /// schemas say which arguments are strings.
    ///
    /// # Errors
    /// As any request.
    pub async fn parser(&self, names: Option<&[String]>) -> Result<CallParser, ClientError> {
        let Some(names) = names else { return Ok(CallParser::new(KnownTools::any())) };
        let params = ListTools { names: Some(names.to_vec()), ..ListTools::default() };
        let tools = self.call::<ToolsList>(params).await?.tools.unwrap_or_default();
        Ok(CallParser::new(KnownTools::listed(names, &tools)))
    }
}
