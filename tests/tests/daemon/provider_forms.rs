//! Everything that is written for a provider's API fits the schema that the provider publishes.

use jsonschema::Validator;
use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon};

/// Tools with schemas, names and texts that APIs refuse as they are.
const ODD_PLUGIN: &str = r##"
local function tool(name, input_schema, more)
  local spec = {name = name, description = "Does " .. name, permission = false, parallelizable = true,
    input_schema = input_schema, execute = function(ctx, input) return {content = hygge.json.encode(input), structured = input} end}
  for key, value in pairs(more or {}) do spec[key] = value end
  hygge.register_tool(spec)
end
tool("brackets", {type = "object", properties = {["filter[id]"] = {type = "string"}, filter_id_ = {type = "string"},
  ["$top"] = {type = "integer"}, ["2nd"] = {type = "string"}, [string.rep("long", 40)] = {type = "string"},
  inner = {type = "object", properties = {["a b"] = {type = "string"}}, required = {"a b"}, additionalProperties = false}},
  required = {"filter[id]"}, additionalProperties = false})
tool("unions", {oneOf = {{properties = {a = {type = "string"}}}, {properties = {["b b"] = {type = "integer"}}}}})
tool("circle", {type = "object", properties = {node = {["$ref"] = "#/$defs/node"}},
  ["$defs"] = {node = {type = "object", properties = {next = {["$ref"] = "#/$defs/node"}}}}})
tool("anything", {})
tool("lists", {type = "object", properties = {a = {type = "array"}, b = {type = {"array", "null"}, items = {type = "string"}}}})
tool("chatty", {type = "object", properties = {}}, {description = string.rep("long words ", 400)})
tool("exact", {type = "object", properties = {city = {type = "string", minLength = 1}, unit = {enum = {"c", "f"}}, days = {type = "integer", minimum = 1}},
  required = {"city"}, additionalProperties = false, examples = {{city = "Oslo"}, {town = "Oslo"}, "Oslo"}},
  {output_schema = {type = "object", properties = {city = {type = "string"}}}})
tool("sums", {type = "object", properties = {expression = {type = "string"}}, required = {"expression"}},
  {grammar = {syntax = "lark", definition = "start: /[0-9+]+/"}})
"##;

const PROVIDERS: [(&str, &str); 4] = [
    ("anthropic", include_str!("../provider_schemas/anthropic.json")),
    ("openai", include_str!("../provider_schemas/openai.json")),
    ("openai_responses", include_str!("../provider_schemas/openai_responses.json")),
    ("gemini", include_str!("../provider_schemas/gemini.json")),
];

fn daemon() -> TestDaemon {
    Setup::new().plugin("odd.lua", ODD_PLUGIN).start()
}

fn published(provider: &str, part: &str) -> Validator {
    let (_, text) = PROVIDERS.iter().find(|(name, _)| *name == provider).unwrap();
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema["$ref"] = format!("#/$defs/{part}").into();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn check(provider: &str, part: &str, written: &Value) {
    let schema = published(provider, part);
    let errors: Vec<String> =
        schema.iter_errors(written).map(|error| format!("{}: {error:.300}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{provider}: {errors:#?}");
}

/// Schemas of arguments are JSON Schemas themselves, but for Gemini.
#[track_caller]
fn check_inner_schemas(tools: &Value) {
    for tool in tools.as_array().unwrap() {
        for place in ["/input_schema", "/parameters", "/function/parameters"] {
            if let Some(schema) = tool.pointer(place) {
                assert!(jsonschema::meta::is_valid(schema), "{schema}");
                jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
            }
        }
    }
}

#[test]
fn lists_fit_the_schemas_that_providers_publish() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let options = [
        json!({}),
        json!({"strict": true, "custom_tools": true, "input_examples": true, "eager_input_streaming": true}),
        json!({"namespaces": true, "custom_tools": false, "allowed_callers": ["direct"]}),
    ];
    for (provider, _) in PROVIDERS {
        for options in &options {
            let mut params = options.clone();
            params["format"] = provider.into();
            let listed = wire.result("tools.list", params);
            check(provider, "tools", &listed["tools"]);
            if provider != "gemini" {
                check_inner_schemas(&listed["tools"]);
            }
        }
    }
}

#[test]
fn results_fit_the_schemas_that_providers_publish() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let call = |provider: &str, id: &str, name: &str, arguments: Value| match provider {
        "anthropic" => {
            json!({"type": "tool_use", "id": id, "name": name, "input": arguments, "caller": {"type": "direct"}})
        }
        "openai" => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        }
        "openai_responses" => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()})
        }
        _ => json!({"functionCall": {"id": id, "name": name, "args": arguments}}),
    };
    for (provider, _) in PROVIDERS {
        let calls = json!([
            call(provider, "c1", "exact", json!({"city": "Oslo"})),
            call(provider, "c2", "exact", json!({})),
            call(provider, "c3", "no_such_tool", json!({})),
        ]);
        let answer = wire.result("tools.execute_batch", json!({"format": provider, "calls": calls}));
        check(provider, "results", &answer["results"]);
    }
}

fn tool<'a>(tools: &'a Value, name: &str) -> &'a Value {
    let is_named =
        |tool: &&Value| tool["name"] == name || tool.pointer("/function/name").is_some_and(|own| own == name);
    tools.as_array().unwrap().iter().find(is_named).unwrap_or_else(|| panic!("{name} is not in {tools}"))
}

#[test]
fn odd_argument_names_are_mapped_and_mapped_back() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let listed = wire.result("tools.list", json!({"format": "gemini", "names": ["brackets"]}));
    let parameters = &listed["tools"][0]["functionDeclarations"][0]["parameters"];
    let names: Vec<&String> = parameters["properties"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "filter_id__2"), "filter_id_ is another argument: {names:?}");
    assert_eq!(parameters["required"], json!(["filter_id__2"]));
    assert_eq!(parameters["properties"]["filter_id__2"]["description"], "`filter[id]`.");
    let args = json!({"filter_id__2": "7", "filter_id_": "8", "_top": 3, "inner": {"a_b": "x"}});
    let call = json!([{"functionCall": {"id": "g1", "name": "brackets", "args": args}}]);
    let answer = wire.result("tools.execute_batch", json!({"format": "gemini", "calls": call}));
    let output = answer["results"][0]["functionResponse"]["response"]["output"].as_str().unwrap();
    let seen: Value = serde_json::from_str(output).unwrap();
    assert_eq!(seen, json!({"filter[id]": "7", "filter_id_": "8", "$top": 3, "inner": {"a b": "x"}}));

    // Anthropic's alphabet has digits at the beginning.
    let listed = wire.result("tools.list", json!({"format": "anthropic", "names": ["brackets"]}));
    let properties = &listed["tools"][0]["input_schema"]["properties"];
    assert!(properties.get("2nd").is_some() && properties.get("filter_id__2").is_some(), "{properties}");
    let call = json!([{"type": "tool_use", "id": "t1", "name": "brackets", "input": {"filter_id__2": "7"}}]);
    let answer = wire.result("tools.execute_batch", json!({"format": "anthropic", "calls": call}));
    assert!(answer.to_string().contains(r#"filter[id]"#), "{answer}");
}

#[test]
fn anthropic_gets_the_members_that_are_asked_for() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let plain = wire.result("tools.list", json!({"format": "anthropic", "names": ["exact"]}));
    for member in ["strict", "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming"] {
        assert_eq!(plain["tools"][0].get(member), None, "{plain}");
    }
    let listed = wire.result(
        "tools.list",
        json!({"format": "anthropic", "names": ["exact", "lists", "circle"], "strict": true, "input_examples": true,
               "eager_input_streaming": true}),
    );
    let exact = tool(&listed["tools"], "exact");
    assert_eq!((&exact["strict"], &exact["eager_input_streaming"]), (&json!(true), &json!(true)));
    assert_eq!(exact["input_examples"], json!([{"city": "Oslo"}]), "one that does not fit the schema would be refused");
    assert_eq!(exact["input_schema"].get("examples"), None);
    assert_eq!(
        exact["input_schema"]["properties"]["days"],
        json!({"type": "integer", "description": "{\"minimum\":1}"})
    );
    assert_eq!(tool(&listed["tools"], "lists").get("strict"), None);
    let warning = listed["warnings"][0].as_str().unwrap();
    assert!(warning.contains("cannot enforce the schemas of circle, lists"), "{warning}");

    let params = json!({"format": "anthropic", "names": ["exact"], "strict": true,
                        "allowed_callers": ["code_execution_20260120"]});
    let listed = wire.result("tools.list", params);
    assert_eq!(listed["tools"][0]["allowed_callers"], json!(["code_execution_20260120"]));
    assert_eq!(listed["tools"][0].get("strict"), None, "the API refuses both together");
    assert!(listed["warnings"][0].as_str().unwrap().contains("allowed_callers"), "{listed}");
    let error = wire.error("tools.list", json!({"format": "anthropic", "allowed_callers": ["programmatic"]}));
    assert!(error["message"].as_str().unwrap().contains("expected direct or a version of code_execution"), "{error}");
}

#[test]
fn a_program_s_call_gets_the_value_and_its_caller_back() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let params = json!({"format": "openai_responses", "names": ["exact"], "allowed_callers": ["programmatic"]});
    let listed = wire.result("tools.list", params);
    assert_eq!(listed["tools"][0]["output_schema"]["properties"]["city"]["type"], "string");
    let caller = json!({"type": "program", "caller_id": "call_9"});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "exact", "arguments": "{\"city\":\"Oslo\"}",
                      "caller": caller});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai_responses", "calls": [call]}));
    check("openai_responses", "results", &answer["results"]);
    assert_eq!(answer["results"][0]["caller"], caller);
    assert_eq!(answer["results"][0]["output"], r#"{"city":"Oslo"}"#);

    let caller = json!({"type": "code_execution_20260120", "tool_id": "srv_1"});
    let call = json!({"type": "tool_use", "id": "c1", "name": "exact", "input": {"city": "Oslo"}, "caller": caller});
    let answer = wire.result("tools.execute_batch", json!({"format": "anthropic", "calls": [call]}));
    check("anthropic", "results", &answer["results"]);
    assert_eq!(answer["results"][0]["content"], json!([{"type": "text", "text": r#"{"city":"Oslo"}"#}]));
}

#[test]
fn a_tool_with_a_grammar_takes_plain_text() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let listed = wire.result("tools.list", json!({"format": "openai_responses", "names": ["sums"]}));
    let format = json!({"type": "grammar", "syntax": "lark", "definition": "start: /[0-9+]+/"});
    let custom = json!({"type": "custom", "name": "sums", "description": "Does sums", "format": format});
    assert_eq!(listed["tools"], json!([custom]));
    let call = json!({"type": "custom_tool_call", "call_id": "c1", "name": "sums", "input": "1+\"2\n"});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai_responses", "calls": [call]}));
    let result = json!({"type": "custom_tool_call_output", "call_id": "c1", "output": r#"{"expression":"1+\"2\n"}"#});
    assert_eq!(answer["results"], json!([result]));
    check("openai_responses", "results", &answer["results"]);

    let listed = wire.result("tools.list", json!({"format": "openai", "names": ["sums"]}));
    assert_eq!(listed["tools"][0]["type"], "function", "few servers of this API know custom tools");
    let listed = wire.result("tools.list", json!({"format": "openai", "names": ["sums"], "custom_tools": true}));
    assert_eq!(listed["tools"][0]["custom"]["format"]["grammar"]["syntax"], "lark");
    let call = json!({"id": "c2", "type": "custom", "custom": {"name": "sums", "input": "3"}});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai", "calls": [call]}));
    assert_eq!(answer["results"], json!([{"role": "tool", "tool_call_id": "c2", "content": r#"{"expression":"3"}"#}]));
    // A model that was shown a function calls a function.
    let call = json!({"type": "function_call", "call_id": "c3", "name": "sums", "arguments": r#"{"expression":"4"}"#});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai_responses", "calls": [call]}));
    assert_eq!(answer["results"][0]["type"], "function_call_output");
}

#[test]
fn strict_openai_tools_may_leave_arguments_out_with_null() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let listed = wire.result("tools.list", json!({"format": "openai", "names": ["exact"], "strict": true}));
    let function = &listed["tools"][0]["function"];
    assert_eq!(
        (&function["strict"], &function["parameters"]["required"]),
        (&json!(true), &json!(["city", "days", "unit"]))
    );
    assert_eq!(function["parameters"]["properties"]["days"]["type"], json!(["integer", "null"]));
    let arguments = r#"{"city":"Oslo","unit":null,"days":null}"#;
    let call = json!({"id": "c1", "type": "function", "function": {"name": "exact", "arguments": arguments}});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai", "calls": [call]}));
    assert_eq!(answer["results"][0]["content"], r#"{"city":"Oslo"}"#);
}

#[test]
fn sources_are_namespaces_when_they_are_asked_for() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let listed = wire.result("tools.list", json!({"format": "openai_responses", "namespaces": true}));
    let odd = tool(&listed["tools"], "odd");
    assert_eq!((&odd["type"], &odd["description"]), (&json!("namespace"), &json!("Tools of the plugin odd")));
    assert_eq!(tool(&listed["tools"], "read")["type"], "function", "built-ins are in none");
    let call = json!({"type": "function_call", "call_id": "c1", "name": "exact", "namespace": "odd",
                      "arguments": "{\"city\":\"Oslo\"}"});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai_responses", "calls": [call]}));
    assert_eq!(answer["results"][0]["output"], r#"{"city":"Oslo"}"#);
}

#[test]
fn deferred_tools_are_found_and_loaded_as_each_api_does_it() {
    let daemon = daemon();
    let mut wire = daemon.connect();
    let list = |wire: &mut toold_tests::Wire, format: &str| {
        let listed = wire.result("tools.list", json!({"format": format, "mode": "deferred"}));
        check(format, "tools", &listed["tools"]);
        assert!(listed["deferred"].as_array().unwrap().iter().any(|name| name == "sums"), "{listed}");
        listed["tools"].clone()
    };
    let anthropic = list(&mut wire, "anthropic");
    assert_eq!(tool(&anthropic, "sums")["defer_loading"], true);
    assert_eq!(tool(&anthropic, "read").get("defer_loading"), None, "it is pinned");
    let call = json!({"type": "tool_use", "id": "t1", "name": "tools_search", "input": {"query": "sums"}});
    let answer = wire.result("tools.execute_batch", json!({"format": "anthropic", "calls": [call]}));
    check("anthropic", "results", &answer["results"]);
    assert_eq!(answer["results"][0]["content"][0], json!({"type": "tool_reference", "tool_name": "sums"}));

    let responses = list(&mut wire, "openai_responses");
    let search = responses.as_array().unwrap().iter().find(|tool| tool["type"] == "tool_search").unwrap();
    assert_eq!(search["execution"], "client");
    assert!(search["description"].as_str().unwrap().contains("odd (8)"), "{search}");
    assert!(!responses.to_string().contains("sums") && !responses.to_string().contains("tools_call"));
    let call =
        json!({"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "sums"}});
    let answer = wire.result("tools.execute_batch", json!({"format": "openai_responses", "calls": [call]}));
    check("openai_responses", "results", &answer["results"]);
    let loaded = answer["results"][0]["tools"].as_array().unwrap();
    let odd = loaded.iter().find(|tool| tool["type"] == "namespace").unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(odd["tools"][0]["name"], "sums", "{answer}");

    for format in ["openai", "gemini"] {
        let tools = list(&mut wire, format).to_string();
        assert!(tools.contains("tools_search") && tools.contains("tools_call") && !tools.contains("sums"), "{format}");
    }
}

#[test]
fn more_tools_than_an_api_takes_are_told_of() {
    let many = "for n = 1, 600 do hygge.register_tool{name = string.format('extra_%03d', n), permission = false,
                description = 'Does', execute = function() return 'done' end} end";
    let daemon = Setup::new().plugin("many.lua", many).start();
    let mut wire = daemon.connect();
    let native = wire.result("tools.list", json!({}));
    let names: Vec<&str> =
        native["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = names.len();
    for (provider, most) in [("openai", 128), ("openai_responses", 128), ("gemini", 512)] {
        let listed = wire.result("tools.list", json!({"format": provider}));
        check(provider, "tools", &listed["tools"]);
        let warning = listed["warnings"][0].as_str().unwrap();
        assert!(warning.contains(&format!("at most {most} tools")) && warning.contains(&all.to_string()), "{warning}");
        let text = listed["tools"].to_string();
        assert!(text.contains(r#""name":"read""#), "{provider}: tools of every step come first");
        let deferred = listed["deferred"].as_array().unwrap();
        for name in &names {
            let is_shown = text.contains(&format!(r#""name":"{name}""#));
            let is_deferred = deferred.iter().any(|one| one == name);
            assert!(is_shown != is_deferred, "{provider}: {name} is dropped without a word, or there twice");
        }
    }
    let listed = wire.result("tools.list", json!({"format": "anthropic"}));
    assert_eq!((listed["tools"].as_array().unwrap().len(), listed.get("warnings")), (all, None));
}
