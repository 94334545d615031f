//! The daemon as an MCP server: a facade over the engine, with no logic of its own.
