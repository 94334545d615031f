//! The text that teaches tools, and calls as each family writes them.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toold_adapters::families::Family;
use toold_adapters::parse::parse;
use toold_adapters::prompt::calls::render_calls;
use toold_adapters::prompt::render_prompt;
use toold_proto::prompt::{Detail, ParsedCall};
use toold_proto::tool::{Annotations, Source, SourceKind, Tool, ToolName};

fn tool(name: &str, description: &str, input_schema: Value) -> Tool {
    Tool {
        name: ToolName::parse(name).unwrap(),
        label: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        output_schema: None,
        source: Source { kind: SourceKind::Builtin, name: "builtin".to_owned(), path: None },
        parallelizable: true,
        permissions: Vec::new(),
        cacheable: false,
        timeout_ms: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    }
}

fn tools() -> Vec<Tool> {
    vec![
        tool(
            "run",
            "Run a shell command and return its output.",
            json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
        ),
        tool(
            "search",
            "Search for a text pattern in files.\n- One line a match.",
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string"},
                "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "more": {},
            }}),
        ),
    ]
}

fn prompt(family: Family, detail: Detail) -> String {
    render_prompt(family, &tools(), detail)
}

fn calls(family: Family) -> String {
    let call = |name: &str, arguments| ParsedCall { name: name.to_owned(), arguments };
    let arguments =
        json!({"text": "it's \"so\"\n", "n": -1.5, "yes": true, "no": null, "list": [1, {"k": "v"}], "5": "5"});
    render_calls(family, &[call("run", arguments), call("now", json!({}))])
}

#[test]
fn the_default_is_the_layout_of_hugind() {
    let tools = vec![
        tools().remove(0),
        tool("read_file", "Read the full contents of a file.", json!({"properties": {"path": {}}})),
        tool("search", "Search for a text pattern in files.", json!({"properties": {"path": {}, "pattern": {}}})),
    ];
    let text = render_prompt(Family::default(), &tools, Detail::default());
    assert_eq!(
        text,
        "You have tools. To use one: <tool_call>{\"name\":\"tool_name\",\"args\":{...}}</tool_call>\n\
         When done, respond without tool_call tags.\n\
         \n\
         - run(command): Run a shell command and return its output.\n\
         - read_file(path): Read the full contents of a file.\n\
         - search(path, pattern): Search for a text pattern in files.\n"
    );
}

#[test]
fn types_are_said_shortly() {
    assert_snapshot!(prompt(Family::Tags, Detail::Types), @r#"
    You have tools. To use one: <tool_call>{"name":"tool_name","args":{...}}</tool_call>
    When done, respond without tool_call tags.

    - run(command: string): Run a shell command and return its output.
    - search(path: string, kinds?: ("a" | "b")[], limit?: integer | boolean, tags?: string[], more?: any): Search for a text pattern in files.
      - One line a match.
    "#);
}

#[test]
fn schemas_are_said_whole() {
    assert_snapshot!(prompt(Family::Tags, Detail::Schema), @r#"
    You have tools. To use one: <tool_call>{"name":"tool_name","args":{...}}</tool_call>
    When done, respond without tool_call tags.

    - run: Run a shell command and return its output.
      arguments: {"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}
    - search: Search for a text pattern in files.
      - One line a match.
      arguments: {"type":"object","required":["path"],"properties":{"path":{"type":"string"},"kinds":{"type":"array","items":{"enum":["a","b"]}},"limit":{"anyOf":[{"type":"integer"},{"type":"boolean"}]},"tags":{"type":"array","items":{"type":"string"}},"more":{}}}
    "#);
}

#[test]
fn each_family_is_taught_its_own_way() {
    let head = |family| prompt(family, Detail::Names).split("\n\n").next().unwrap().to_owned();
    assert_snapshot!(head(Family::Hermes), @r#"
    You have tools. To use one: <tool_call>{"name": "tool_name", "arguments": {...}}</tool_call>
    Put every call in tags of its own. When done, respond without tool_call tags.
    "#);
    assert_snapshot!(head(Family::Gemma), @r#"
    You have tools. To use one: <|tool_call>call:tool_name{text_argument:<|"|>text<|"|>,number_argument:1}<tool_call|>
    Text stands between <|"|> and <|"|>. When done, respond without tool_call marks.
    "#);
    assert_snapshot!(head(Family::Mistral), @r#"
    You have tools. To use one: [TOOL_CALLS][{"name": "tool_name", "arguments": {...}}]
    Put several calls in one list. When done, respond without [TOOL_CALLS].
    "#);
    assert_snapshot!(head(Family::Llama), @r#"
    You have tools. To use one: <|python_tag|>{"name": "tool_name", "parameters": {...}}
    Put ; between several calls. When done, respond without <|python_tag|>.
    "#);
    assert_snapshot!(head(Family::Pythonic), @r#"
    You have tools. To use one: [tool_name(text_argument="text", number_argument=1)]
    Put the list on a line of its own, several calls in one list, every argument with its name. When done, respond without such a list.
    "#);
    assert_snapshot!(head(Family::Function), @r#"
    You have tools. To use one: <function=tool_name>{...}</function>
    When done, respond without function tags.
    "#);
    assert_snapshot!(head(Family::QwenCoder), @r#"
    You have tools. To use one: <tool_call>
    <function=tool_name>
    <parameter=text_argument>
    text
    </parameter>
    <parameter=number_argument>
    1
    </parameter>
    </function>
    </tool_call>
    When done, respond without function tags.
    "#);
}

#[test]
fn each_family_writes_calls_its_own_way() {
    assert_snapshot!(calls(Family::Tags), @r#"
    <tool_call>{"name":"run","args":{"text":"it's \"so\"\n","n":-1.5,"yes":true,"no":null,"list":[1,{"k":"v"}],"5":"5"}}</tool_call>
    <tool_call>{"name":"now","args":{}}</tool_call>
    "#);
    assert_snapshot!(calls(Family::Hermes), @r#"
    <tool_call>{"name":"run","arguments":{"text":"it's \"so\"\n","n":-1.5,"yes":true,"no":null,"list":[1,{"k":"v"}],"5":"5"}}</tool_call>
    <tool_call>{"name":"now","arguments":{}}</tool_call>
    "#);
    assert_snapshot!(calls(Family::Gemma), @r#"
    <|tool_call>call:run{text:<|"|>it's "so"
    <|"|>,n:-1.5,yes:true,no:null,list:[1,{k:<|"|>v<|"|>}],5:<|"|>5<|"|>}<tool_call|><|tool_call>call:now{}<tool_call|>
    "#);
    assert_snapshot!(calls(Family::Mistral), @r#"[TOOL_CALLS][{"name":"run","arguments":{"text":"it's \"so\"\n","n":-1.5,"yes":true,"no":null,"list":[1,{"k":"v"}],"5":"5"}},{"name":"now","arguments":{}}]"#);
    assert_snapshot!(calls(Family::Llama), @r#"<|python_tag|>{"name":"run","parameters":{"text":"it's \"so\"\n","n":-1.5,"yes":true,"no":null,"list":[1,{"k":"v"}],"5":"5"}}; {"name":"now","parameters":{}}"#);
    assert_snapshot!(calls(Family::Pythonic), @r#"[run(text="it's \"so\"\n", n=-1.5, yes=True, no=None, list=[1,{"k": "v"}], 5="5"), now()]"#);
    assert_snapshot!(calls(Family::Function), @r#"
    <function=run>{"text":"it's \"so\"\n","n":-1.5,"yes":true,"no":null,"list":[1,{"k":"v"}],"5":"5"}</function>
    <function=now>{}</function>
    "#);
    assert_snapshot!(calls(Family::QwenCoder), @r#"
    <tool_call>
    <function=run>
    <parameter=text>
    it's "so"

    </parameter>
    <parameter=n>
    -1.5
    </parameter>
    <parameter=yes>
    true
    </parameter>
    <parameter=no>
    null
    </parameter>
    <parameter=list>
    [1,{"k":"v"}]
    </parameter>
    <parameter=5>
    "5"
    </parameter>
    </function>
    </tool_call>
    <tool_call>
    <function=now>
    </function>
    </tool_call>
    "#);
}

#[test]
fn no_tools_and_no_calls_are_no_text() {
    for family in Family::all() {
        assert_eq!(render_prompt(family, &[], Detail::Schema), "");
        assert_eq!(render_calls(family, &[]), "");
    }
}

#[test]
fn a_prompt_is_the_same_bytes_each_time() {
    for family in Family::all() {
        assert_eq!(prompt(family, Detail::Schema), prompt(family, Detail::Schema));
    }
}

#[test]
fn every_family_is_found_by_its_name() {
    for family in Family::all() {
        assert_eq!(Family::parse(family.as_str()), Ok(family));
    }
    assert_eq!(Family::parse("function_tag"), Ok(Family::Function));
    let error = Family::parse("xml").unwrap_err().to_string();
    assert!(error.starts_with(r#"there is no prompt format "xml"; there are tags, hermes, qwen, "#), "{error}");
}

#[test]
fn calls_of_several_families_in_one_answer_are_all_read() {
    let one = |name: &str| ParsedCall { name: name.to_owned(), arguments: json!({"a": "b"}) };
    let mut text = String::new();
    let mut expected = Vec::new();
    // These are calls only if nothing else stands in the answer.
    let whole = [Family::Llama3, Family::Xlam, Family::Phi4Mini, Family::Gigachat, Family::HyperclovaX];
    for (n, family) in Family::all().filter(|family| !whole.contains(family)).enumerate() {
        let call = one(&format!("f{n}"));
        text.push_str(&render_calls(family, std::slice::from_ref(&call)));
        text.push_str("\nand\n");
        expected.push(call);
    }
    let parsed = parse(&text, None);
    assert_eq!(parsed.errors, Vec::<String>::new());
    assert_eq!(parsed.calls, expected);
}
