//! Tools as each provider takes them.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toold_adapters::providers::{OfferedTool, offer, tools_as};
use toold_proto::call::{ProviderOptions, ToolFormat};
use toold_proto::tool::{Annotations, Source, SourceKind, Tool, ToolName};

fn tool(name: &str, description: &str, input_schema: Value) -> Tool {
    Tool {
        name: ToolName::parse(name).unwrap(),
        label: format!("The {name}"),
        description: description.to_owned(),
        input_schema,
        output_schema: None,
        source: Source { kind: SourceKind::Builtin, name: "builtin".to_owned(), path: None },
        parallelizable: true,
        permissions: Vec::new(),
        cacheable: false,
        timeout_ms: None,
        annotations: Annotations { read_only: Some(true), ..Annotations::default() },
        version: None,
        grammar: None,
    }
}

fn read() -> Tool {
    tool(
        "read",
        "Reads a file.",
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "limit": {"type": "integer", "minimum": 1, "default": 200},
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
    )
}

fn shown(format: ToolFormat, tool: Tool) -> String {
    serde_json::to_string_pretty(&tools_as(format, &[tool])[0]).unwrap()
}

/// The parameters that Gemini gets for one property of this schema.
fn gemini(property: Value) -> String {
    let schema = json!({"type": "object", "properties": {"x": property}, "$defs": {
        "size": {"type": "integer", "exclusiveMinimum": 0},
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
    }});
    let tools = tools_as(ToolFormat::Gemini, &[tool("t", "", schema)]);
    let parameters = &tools[0]["functionDeclarations"][0]["parameters"];
    assert_eq!(parameters["type"], "OBJECT");
    parameters["properties"]["x"].to_string()
}

#[test]
fn anthropic_takes_an_input_schema() {
    assert_snapshot!(shown(ToolFormat::Anthropic, read()), @r#"
    {
      "name": "read",
      "description": "Reads a file.",
      "input_schema": {
        "type": "object",
        "properties": {
          "path": {
            "type": "string",
            "description": "Where."
          },
          "limit": {
            "type": "integer",
            "minimum": 1,
            "default": 200
          }
        },
        "required": [
          "path"
        ],
        "additionalProperties": false
      }
    }
    "#);
}

#[test]
fn openai_takes_functions() {
    assert_snapshot!(shown(ToolFormat::Openai, read()), @r#"
    {
      "type": "function",
      "function": {
        "name": "read",
        "description": "Reads a file.",
        "parameters": {
          "type": "object",
          "properties": {
            "path": {
              "type": "string",
              "description": "Where."
            },
            "limit": {
              "type": "integer",
              "minimum": 1,
              "default": 200
            }
          },
          "required": [
            "path"
          ],
          "additionalProperties": false
        }
      }
    }
    "#);
}

#[test]
fn openai_responses_takes_flat_functions() {
    assert_snapshot!(shown(ToolFormat::OpenaiResponses, read()), @r#"
    {
      "type": "function",
      "name": "read",
      "description": "Reads a file.",
      "parameters": {
        "type": "object",
        "properties": {
          "path": {
            "type": "string",
            "description": "Where."
          },
          "limit": {
            "type": "integer",
            "minimum": 1,
            "default": 200
          }
        },
        "required": [
          "path"
        ],
        "additionalProperties": false
      },
      "strict": false
    }
    "#);
}

#[test]
fn gemini_takes_declarations() {
    assert_snapshot!(shown(ToolFormat::Gemini, read()), @r#"
    {
      "functionDeclarations": [
        {
          "name": "read",
          "description": "Reads a file.",
          "parameters": {
            "type": "OBJECT",
            "required": [
              "path"
            ],
            "properties": {
              "path": {
                "type": "STRING",
                "description": "Where."
              },
              "limit": {
                "type": "INTEGER",
                "default": 200,
                "minimum": 1
              }
            }
          }
        }
      ]
    }
    "#);
}

#[test]
fn mcp_takes_labels_and_hints() {
    let mut tool = read();
    tool.output_schema = Some(json!({"type": "object"}));
    assert_snapshot!(shown(ToolFormat::Mcp, tool), @r#"
    {
      "name": "read",
      "title": "The read",
      "description": "Reads a file.",
      "inputSchema": {
        "type": "object",
        "properties": {
          "path": {
            "type": "string",
            "description": "Where."
          },
          "limit": {
            "type": "integer",
            "minimum": 1,
            "default": 200
          }
        },
        "required": [
          "path"
        ],
        "additionalProperties": false
      },
      "outputSchema": {
        "type": "object"
      },
      "annotations": {
        "readOnlyHint": true
      }
    }
    "#);
}

#[test]
fn mcp_gets_no_output_schema_that_is_no_object() {
    let mut tool = read();
    tool.output_schema = Some(json!({"type": "string"}));
    assert_eq!(tools_as(ToolFormat::Mcp, &[tool])[0].get("outputSchema"), None);
}

#[test]
fn native_is_the_tool_itself() {
    assert_eq!(tools_as(ToolFormat::Native, &[read()]), json!([read()]));
}

#[test]
fn tools_are_sorted_and_the_same_bytes_each_time() {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let (a, b) = (tool("a", "", schema.clone()), tool("b", "", schema));
    for format in ALL {
        let one = tools_as(format, &[a.clone(), b.clone()]).to_string();
        assert_eq!(one, tools_as(format, &[b.clone(), a.clone()]).to_string(), "{format:?}");
    }
}

#[test]
fn no_tools_are_an_empty_list() {
    for format in ALL {
        assert_eq!(tools_as(format, &[]), json!([]), "{format:?}");
    }
}

#[test]
fn unions_at_the_root_are_said_in_the_description() {
    let schema = json!({
        "type": "object",
        "properties": {"issue": {"type": "string"}},
        "anyOf": [
            {"required": ["title"], "properties": {"title": {"type": "string"}}},
            {"required": ["body"], "properties": {"body": {"type": "string"}}},
        ],
    });
    assert_snapshot!(shown(ToolFormat::Anthropic, tool("update", "Updates.", schema.clone())), @r#"
    {
      "name": "update",
      "description": "Updates.\n\nMust also fit this JSON Schema: {\"anyOf\":[{\"required\":[\"title\"],\"properties\":{\"title\":{\"type\":\"string\"}}},{\"required\":[\"body\"],\"properties\":{\"body\":{\"type\":\"string\"}}}]}",
      "input_schema": {
        "type": "object",
        "properties": {
          "issue": {
            "type": "string"
          },
          "title": {
            "type": "string"
          },
          "body": {
            "type": "string"
          }
        }
      }
    }
    "#);
    for format in [ToolFormat::Openai, ToolFormat::OpenaiResponses, ToolFormat::Gemini] {
        let text = tools_as(format, &[tool("update", "Updates.", schema.clone())]).to_string();
        assert!(text.contains(r#"Must also fit this JSON Schema: {\"anyOf\":"#), "{text}");
        assert!(text.contains(r#""body":"#), "{text}");
    }
}

#[test]
fn a_root_that_is_a_reference_is_put_in_place() {
    let schema = json!({"$ref": "#/$defs/input", "$defs": {"input": {
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
    }}});
    for format in [ToolFormat::Anthropic, ToolFormat::Openai, ToolFormat::OpenaiResponses] {
        let tools = tools_as(format, &[tool("t", "", schema.clone())]);
        let key = if format == ToolFormat::Anthropic { "/0/input_schema" } else { "/0/parameters" };
        let root = tools.pointer(key).or_else(|| tools.pointer("/0/function/parameters")).unwrap();
        assert_eq!(root["type"], "object");
        assert_eq!(root["properties"]["a"]["type"], "string");
    }
}

#[test]
fn an_empty_schema_is_an_object_without_properties() {
    for schema in [json!({}), json!(true), json!({"type": "object"})] {
        let tools = tools_as(ToolFormat::Openai, &[tool("t", "", schema)]);
        assert_eq!(tools[0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    }
}

#[test]
fn anthropic_gets_other_names_for_odd_arguments() {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "string"}, "odd name": {"type": "integer"}},
        "required": ["ok", "odd name"],
        "additionalProperties": false,
    });
    assert_snapshot!(shown(ToolFormat::Anthropic, tool("t", "Does.", schema)), @r#"
    {
      "name": "t",
      "description": "Does.",
      "input_schema": {
        "type": "object",
        "properties": {
          "ok": {
            "type": "string"
          },
          "odd_name": {
            "type": "integer",
            "description": "`odd name`."
          }
        },
        "required": [
          "ok",
          "odd_name"
        ],
        "additionalProperties": false
      }
    }
    "#);
}

#[test]
fn openai_arrays_get_items() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "array"},
        "b": {"anyOf": [{"type": ["array", "null"]}]},
    }});
    let tools = tools_as(ToolFormat::Openai, &[tool("t", "", schema)]);
    let properties = &tools[0]["function"]["parameters"]["properties"];
    assert_eq!(properties["a"]["items"], json!({}));
    assert_eq!(properties["b"]["anyOf"][0]["items"], json!({}));
}

#[test]
fn openai_descriptions_go_on_in_the_parameters() {
    let words: Vec<String> = (0..400).map(|n| format!("wörd{n}")).collect();
    let long = words.join(" ");
    for format in [ToolFormat::Openai, ToolFormat::OpenaiResponses] {
        let tools = tools_as(format, &[tool("t", &long, json!({"type": "object", "description": "Own."}))]);
        let function = tools[0].get("function").unwrap_or(&tools[0]);
        let head = function["description"].as_str().unwrap();
        let rest = function["parameters"]["description"].as_str().unwrap();
        assert!(head.chars().count() <= 1024, "{}", head.chars().count());
        for word in &words {
            assert!(head.contains(word.as_str()) || rest.contains(word.as_str()), "{word}");
        }
        assert!(rest.ends_with("Own."));
    }
}

#[test]
fn gemini_without_arguments_has_no_parameters() {
    let tools = tools_as(ToolFormat::Gemini, &[tool("t", "Does.", json!({"type": "object", "properties": {}}))]);
    assert_eq!(tools, json!([{"functionDeclarations": [{"name": "t", "description": "Does."}]}]));
}

#[test]
fn gemini_says_in_words_what_it_lacks() {
    assert_snapshot!(gemini(json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})), @r#"{"type":"ARRAY","items":{"type":"STRING"},"description":"Must also fit this JSON Schema: {\"uniqueItems\":true}"}"#);
    assert_snapshot!(gemini(json!({"type": "string", "format": "uri", "description": "A link."})), @r#"{"type":"STRING","description":"A link.\n\nMust also fit this JSON Schema: {\"format\":\"uri\"}"}"#);
    assert_snapshot!(gemini(json!({"type": "object", "additionalProperties": {"type": "string"}})), @r#"{"type":"OBJECT","description":"Must also fit this JSON Schema: {\"additionalProperties\":{\"type\":\"string\"}}"}"#);
    assert_snapshot!(gemini(json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5})), @r#"{"type":"NUMBER","description":"Must also fit this JSON Schema: {\"exclusiveMinimum\":0,\"multipleOf\":0.5}"}"#);
    assert_snapshot!(gemini(json!({"enum": [1, 2]})), @r#"{"type":"INTEGER","description":"Must also fit this JSON Schema: {\"enum\":[1,2]}"}"#);
    assert_snapshot!(gemini(json!({"const": true})), @r#"{"type":"BOOLEAN","description":"Must also fit this JSON Schema: {\"const\":true}"}"#);
    assert_snapshot!(gemini(json!({"type": "string", "not": {"enum": ["a"]}})), @r#"{"type":"STRING","description":"Must also fit this JSON Schema: {\"not\":{\"enum\":[\"a\"]}}"}"#);
    assert_snapshot!(gemini(json!(false)), @r#"{"anyOf":[{"type":"STRING","description":"Must also fit this JSON Schema: {\"not\":{}}"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"},{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"}]}}]}"#);
}

#[test]
fn gemini_rewrites_what_it_can() {
    assert_snapshot!(gemini(json!({"type": ["string", "null"]})), @r#"{"type":"STRING","nullable":true}"#);
    assert_snapshot!(gemini(json!({"type": ["string", "integer"], "minimum": 2, "minLength": 1, "description": "Which."})), @r#"{"anyOf":[{"type":"STRING","minLength":1,"description":"Which."},{"type":"INTEGER","minimum":2}]}"#);
    assert_snapshot!(gemini(json!({"const": "a"})), @r#"{"type":"STRING","format":"enum","enum":["a"]}"#);
    assert_snapshot!(gemini(json!({"enum": ["a", "b", null]})), @r#"{"type":"STRING","format":"enum","enum":["a","b"],"nullable":true}"#);
    assert_snapshot!(gemini(json!({"$ref": "#/$defs/size", "description": "How many."})), @r#"{"type":"INTEGER","description":"How many.","minimum":1}"#);
    assert_snapshot!(gemini(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]})), @r#"{"anyOf":[{"type":"STRING","description":"Exactly one of the alternatives fits."},{"type":"INTEGER"}]}"#);
    assert_snapshot!(gemini(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), @r#"{"type":"STRING","nullable":true}"#);
    assert_snapshot!(gemini(json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]})), @r#"{"type":"OBJECT","required":["b"],"properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}}}"#);
    assert_snapshot!(gemini(json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]})), @r#"{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]},"description":"Must also fit this JSON Schema: {\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"}"#);
    assert_snapshot!(gemini(json!({"type": "string", "format": "date-time"})), @r#"{"type":"STRING","format":"date-time"}"#);
    assert_snapshot!(gemini(json!({})), @r#"{"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"},{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"}]}}]}"#);
}

#[test]
fn gemini_ends_circles_of_references() {
    assert_snapshot!(gemini(json!({"$ref": "#/$defs/node"})), @r##"{"type":"OBJECT","properties":{"next":{"type":"OBJECT","description":"Must also fit this JSON Schema: {\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#/$defs/node\"}}}}}"}}}"##);
    assert_snapshot!(gemini(json!({"$ref": "#/nowhere"})), @r##"{"type":"OBJECT","description":"Must also fit this JSON Schema: {\"$ref\":\"#/nowhere\"}"}"##);
}

#[test]
fn gemini_bounds_references_that_multiply() {
    let mut defs = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    defs.insert("d40".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    let tools = tools_as(ToolFormat::Gemini, &[tool("t", "", schema)]);
    assert!(tools.to_string().len() < 1_000_000);
}

#[test]
fn deferred_tools_are_shown_as_each_provider_loads_them() {
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let (search, hidden) = (tool("tools_search", "Finds tools.", schema), tool("hidden", "Does.", json!({})));
    let offered = [OfferedTool { tool: &hidden, deferred: true }, OfferedTool { tool: &search, deferred: false }];
    let shown = |format| offer(format, &offered, &ProviderOptions::default()).tools.to_string();
    assert_snapshot!(shown(ToolFormat::Anthropic), @r#"[{"name":"hidden","description":"Does.","input_schema":{"type":"object","properties":{}},"defer_loading":true},{"name":"tools_search","description":"Finds tools.","input_schema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}]"#);
    assert_snapshot!(shown(ToolFormat::OpenaiResponses), @r#"[{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}]"#);
    assert_snapshot!(shown(ToolFormat::Openai), @r#"[{"type":"function","function":{"name":"tools_search","description":"Finds tools.","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}}]"#);
    assert!(!shown(ToolFormat::Gemini).contains("hidden"));
}

#[test]
fn a_reference_through_a_renamed_argument_still_leads_there() {
    let schema = json!({"type": "object", "properties": {
        "a b": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "c": {"$ref": "#/properties/a b"},
    }});
    let tools = tools_as(ToolFormat::Gemini, &[tool("t", "", schema)]);
    let c = &tools[0]["functionDeclarations"][0]["parameters"]["properties"]["c"];
    assert_eq!(c["properties"]["n"]["type"], "INTEGER", "{tools}");
}

const ALL: [ToolFormat; 6] = [
    ToolFormat::Native,
    ToolFormat::Anthropic,
    ToolFormat::Openai,
    ToolFormat::OpenaiResponses,
    ToolFormat::Gemini,
    ToolFormat::Mcp,
];
