//! Makes `openrpc.json` from the types of [`crate::method`].

use serde_json::{Value, json};
use toold_schemas::{assert_current, plain_schema_of};

use crate::agent_request::PermissionWaiting;
use crate::call::{CallProgress, CancelRequest};
use crate::error;
use crate::method::{Described, describe_all};

/// The document. The daemon puts its version into it.
fn document() -> Value {
    let methods: Vec<Value> = describe_all().into_iter().map(method).collect();
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "toold",
            "version": "0.0.0",
            "description": "One tool registry for every agent and editor.",
            "license": {"name": "MIT"},
        },
        "methods": methods,
        "x-notifications": [
            {
                "name": "tools.progress",
                "summary": "The progress of a running call, before its answer.",
                "params": plain_schema_of::<CallProgress>(),
            },
            {
                "name": "permissions.waiting",
                "summary": "A person is asked about a `permissions.request` of this client, before its answer.",
                "params": plain_schema_of::<PermissionWaiting>(),
            },
            {
                "name": "$/cancelRequest",
                "summary": "Sent by a client: cancels a request in flight on this connection.",
                "params": plain_schema_of::<CancelRequest>(),
            },
        ],
        "components": {"errors": errors()},
    })
}

fn method(described: Described) -> Value {
    let required: Vec<&str> =
        described.params["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let params: Vec<Value> = described.params["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mut param = json!({"name": name, "required": required.contains(&name.as_str()), "schema": schema});
            if let Some(text) = schema.get("description") {
                param["description"] = text.clone();
            }
            param
        })
        .collect();
    let mut method = json!({
        "name": described.name,
        "summary": described.summary,
        "paramStructure": "by-name",
        "params": params,
        "result": {"name": "result", "schema": described.answer},
    });
    if let Some((name, schema)) = described.items {
        method["x-items"] = json!({"method": name, "schema": schema});
    }
    method
}

fn errors() -> Value {
    let all = [
        ("invalid_params", error::INVALID_PARAMS, "invalid parameters or tool arguments"),
        ("unknown_tool", error::UNKNOWN_TOOL, "unknown tool; data.suggestions has similar names"),
        ("permission_denied", error::PERMISSION_DENIED, "the permission engine failed or is closing"),
        ("execution_failed", error::EXECUTION_FAILED, "a crash, a missing dependency, a failed I/O setup"),
        ("unknown_session", error::UNKNOWN, "no such session, plugin, request or subscription"),
        ("overloaded", error::OVERLOADED, "a limit on calls is reached; the call did not run"),
        ("cancelled", error::CANCELLED, "the call was cancelled"),
    ];
    all.into_iter().map(|(kind, code, message)| (kind.to_owned(), json!({"code": code, "message": message}))).collect()
}

#[test]
fn openrpc_document_is_current() {
    // With a small indent, because every daemon contains the file.
    assert_current(concat!(env!("CARGO_MANIFEST_DIR"), "/openrpc.json"), &document(), " ");
}

#[test]
fn every_parameter_has_a_description() {
    let document = document();
    let mut found = Vec::new();
    for method in document["methods"].as_array().unwrap() {
        for param in method["params"].as_array().unwrap().iter().filter(|param| !param["description"].is_string()) {
            found.push(format!("{} {}", method["name"], param["name"]));
        }
    }
    assert_eq!(found, Vec::<String>::new(), "fields without a doc comment");
}

#[test]
fn every_method_is_in_the_description_of_the_protocol() {
    let page = include_str!("../../PROTOCOL.md");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let names: Vec<&str> = page.split(|c| !is_name(c)).map(|word| word.trim_end_matches('.')).collect();
    let document = document();
    let methods = document["methods"].as_array().unwrap().iter().map(|method| method["name"].as_str().unwrap());
    let missing: Vec<&str> = methods.filter(|name| !names.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "PROTOCOL.md lacks methods");
}

#[test]
fn every_method_is_described_by_name() {
    let document = document();
    let methods = document["methods"].as_array().unwrap();
    assert!(methods.len() > 20);
    for method in methods {
        assert_eq!(method["paramStructure"], "by-name");
        for param in method["params"].as_array().unwrap() {
            assert!(param["schema"].is_object() || param["schema"].is_boolean(), "{method}");
        }
    }
    let execute = methods.iter().find(|m| m["name"] == "tools.execute").unwrap();
    assert_eq!(execute["params"][0]["name"], "name");
    assert_eq!(execute["params"][0]["required"], true);
}
