//! Results of the parser for texts that models write, and for some that they should not write.
//!
//! Each case is a text and what is found in it: the calls as `name{arguments}`, then `text=`,
//! `thinking=` and `errors=` (their number), each only if there is some.

use serde_json::json;
use toold_adapters::parse::collect::collect;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{CallParser, parse, parse_with};
use toold_proto::prompt::ParsedPrompt;
use toold_proto::tool::{Annotations, Source, SourceKind, Tool, ToolName};

type Cases = &'static [(&'static str, &'static str)];

const TAGS: Cases = &[
    (r#"<tool_call>{"name":"f","args":{"a":1}}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>{"name":"f","parameters":{"a":1}}</tool_call>"#, r#"f{"a":1}"#),
    ("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "f{}"),
    (r#"<tool_call>{"args":{"a":1},"name":"f"}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>{"name":"f"}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"name":"f","args":null}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"name":" f ","args":{}}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"type":"function","id":"1","name":"f","args":{}}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>{"function":{"name":"f","arguments":{"a":1}}}</tool_call>"#, r#"f{"a":1}"#),
    (r#"Now: <tool_call>{"name":"f","args":{}}</tool_call>"#, "f{} text=Now:"),
    (r#"<tool_call>{"name":"f","args":{}}</tool_call> Done."#, "f{} text=Done."),
    (r#"a <tool_call>{"name":"f"}</tool_call> b <tool_call>{"name":"g"}</tool_call> c"#, "f{} g{} text=a  b  c"),
    (r#"<tool_call>{"name":"f"}</tool_call><tool_call>{"name":"g"}</tool_call>"#, "f{} g{}"),
    (r#"<tool_call>{"name":"f"}<tool_call>{"name":"g"}</tool_call>"#, "f{} g{}"),
    ("<tool_call>{\"name\":\"f\"}\n{\"name\":\"g\"}</tool_call>", "f{} g{}"),
    (r#"<tool_call>{"name":"f"},{"name":"g"}</tool_call>"#, "f{} g{}"),
    (r#"<tool_call>{"name":"f"}; {"name":"g"};</tool_call>"#, "f{} g{}"),
    (r#"<tool_call>{"name":"f","args":{"s":"</tool_call>"}}</tool_call>"#, r#"f{"s":"</tool_call>"}"#),
    (
        r#"<tool_call>{"name":"f","args":{"s":"<tool_call>{}</tool_call>"}}</tool_call>"#,
        r#"f{"s":"<tool_call>{}</tool_call>"}"#,
    ),
    (r#"<tool_call>{"name":"f","args":{"s":"\"</tool_call>\""}}</tool_call>"#, r#"f{"s":"\"</tool_call>\""}"#),
    (r#"<tool_call>{"name":"f","args":{"s":'</tool_call>'}}</tool_call>"#, r#"f{"s":"</tool_call>"}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"s\":\"a\nb\"}}</tool_call>", r#"f{"s":"a\nb"}"#),
    (r#"<tool_call>{"name":"f","args":{"s":"grüße 🦀"}}</tool_call>"#, r#"f{"s":"grüße 🦀"}"#),
    (r#"<tool_call>{"name":"f","args":{"s":"\ud83e\udd80"}}</tool_call>"#, r#"f{"s":"🦀"}"#),
    (r#"<tool_call>{"name":"f","args":{"n":[1,[2,{"a":[]}]]}}</tool_call>"#, r#"f{"n":[1,[2,{"a":[]}]]}"#),
    (r#"<tool_call>{"name":"f","args":{}}<tool_call|>"#, "f{}"),
    (r#"<tool_call>{"name":"f","args":{}}<|/tool_call|>"#, "f{}"),
    (r#"<tool_call>call:f{a: 1}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call></tool_call>"#, "errors=1"),
    ("The tag is `<tool_call>`", "text=The tag is `<tool_call>`"),
    ("Use `<tool_call>` tags.", "text=Use `<tool_call>` tags."),
    (r#"A `<tool_call>` is: <tool_call>{"name":"f"}</tool_call>"#, "f{} text=A `<tool_call>` is:"),
    ("a < b and <b>bold</b>", "text=a < b and <b>bold</b>"),
    ("<tool_cal", "text=<tool_cal"),
    ("</tool_call>", ""),
    ("It ends with `</tool_call>`.", "text=It ends with `</tool_call>`."),
    ("", ""),
    ("Hello.", "text=Hello."),
];

const GEMMA: Cases = &[
    (r#"<|tool_call>call:run{command: "ls /Applications"}<tool_call|>"#, r#"run{"command":"ls /Applications"}"#),
    (r#"<|tool_call|>call:read_file{"path": "/tmp/x"}<|/tool_call|>"#, r#"read_file{"path":"/tmp/x"}"#),
    (r#"<|tool_call>call:f{s:<|"|>text<|"|>}<tool_call|>"#, r#"f{"s":"text"}"#),
    (r#"<|tool_call>call:f{s:<|"|>it's "so"<|"|>,n:42}<tool_call|>"#, r#"f{"s":"it's \"so\"","n":42}"#),
    (r#"<|tool_call>call:f{s:<|"|>a<|b<|"|>}<tool_call|>"#, r#"f{"s":"a<|b"}"#),
    (r#"<|tool_call>call:f{s:<|"|>a\n<|"|>}<tool_call|>"#, r#"f{"s":"a\\n"}"#),
    (r#"<|tool_call>call:f{s:<|"|><tool_call|><|"|>}<tool_call|>"#, r#"f{"s":"<tool_call|>"}"#),
    (r#"<|tool_call>call:f{l:[<|"|>a<|"|>,<|"|>b<|"|>],o:{k:true}}<tool_call|>"#, r#"f{"l":["a","b"],"o":{"k":true}}"#),
    (r#"<|tool_call>call:f{}<tool_call|>"#, "f{}"),
    (r#"<|tool_call>call:f {a:1}<tool_call|>"#, r#"f{"a":1}"#),
    (r#"<|tool_call> call:f{a:1} <tool_call|>"#, r#"f{"a":1}"#),
    (r#"<|tool_call>call:f{a:1}call:g{}<tool_call|>"#, r#"f{"a":1} g{}"#),
    (r#"<|tool_call>call:f{}<tool_call|><|tool_call>call:g{}<tool_call|>"#, "f{} g{}"),
    (r#"<|tool_call>call:f{}</tool_call>"#, "f{}"),
    (r#"<|tool_call>{"name":"f","args":{}}<tool_call|>"#, "f{}"),
    (r#"<|tool_call|>{"name":"f","args":{}}<|/tool_call|>"#, "f{}"),
    (r#"<|tool_call|>[{"name":"f","arguments":{}}]<|/tool_call|>"#, "f{}"),
    (r#"<start_function_call>call:f{s:<escape>text<escape>}<end_function_call>"#, r#"f{"s":"text"}"#),
    (r#"<|tool_call>call:ns.f-2{a:1}<tool_call|>"#, r#"ns.f-2{"a":1}"#),
    (r#"<|tool_call>call:f{a:1}"#, r#"f{"a":1}"#),
    (r#"<|tool_call>call:f{command: ls}<tool_call|>"#, "errors=1"),
    (r#"<|tool_call>call:f<tool_call|>"#, "errors=1"),
    (r#"<|tool_call>call:f(a=1)<tool_call|>"#, "errors=1"),
    (r#"<|tool_call>call:{a:1}<tool_call|>"#, "errors=1"),
    (r#"<|tool_call>call:f g{a:1}<tool_call|>"#, "errors=1"),
    (
        r#"<|tool_call>call:f{s:<|"|>text"}<tool_call|>"#,
        r#"text=<|tool_call>call:f{s:<|"|>text"}<tool_call|> errors=1"#,
    ),
];

const LISTS: Cases = &[
    (r#"<tool_call>[{"name":"f"},{"name":"g","args":{"a":1}}]</tool_call>"#, r#"f{} g{"a":1}"#),
    (r#"<tool_call>[]</tool_call>"#, ""),
    (r#"<tool_call>[{"name":"f"},]</tool_call>"#, "f{}"),
    (r#"<tool_call>[{"name":"f"},5,{"name":"g"}]</tool_call>"#, "f{} g{} errors=1"),
    (r#"<tool_call>[[{"name":"f"}]]</tool_call>"#, "errors=1"),
    (r#"<tool_call>["f"]</tool_call>"#, "errors=1"),
    (r#"<|tool_call>[{"name":"f"},{"name":"g"}]<tool_call|>"#, "f{} g{}"),
    (r#"<tool_call>[{"name":"f"}][{"name":"g"}]</tool_call>"#, "f{} g{}"),
];

const FENCES: Cases = &[
    ("```json\n<tool_call>{\"name\":\"f\"}</tool_call>\n```", "f{}"),
    ("```\n<tool_call>{\"name\":\"f\"}</tool_call>\n```", "f{}"),
    ("Look:\n```xml\n<tool_call>{\"name\":\"f\"}</tool_call>\n```\nDone.", "f{} text=Look:\n\nDone."),
    ("```\n<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>\n```", "f{} g{}"),
    ("```\n<|tool_call>call:f{}<tool_call|>\n```", "f{}"),
    ("```python\n[f(a=1)]\n```", "f{\"a\":1}"),
    ("Okay.\n\n```tool_code\nf(a=200.0, b='x')\n```\n", "f{\"a\":200.0,\"b\":\"x\"} text=Okay."),
    ("```tool_code\nf(a=\"```\")\n\n  print(g(\n  b=2) )\n```", "f{\"a\":\"```\"} g{\"b\":2}"),
    ("```tool_code\nf(a=1)", "f{\"a\":1} text=```tool_code"),
    ("```tool_code\nf(a=1)\nf(2)\n```", "text=```tool_code\nf(a=1)\nf(2)\n```"),
    ("```tool_code\nx = f(a=1)\n```", "text=```tool_code\nx = f(a=1)\n```"),
    ("```python\nf(a=1)\n```", "text=```python\nf(a=1)\n```"),
    // A fence of prose is prose.
    (
        "```\nlet x = 1;\n<tool_call>{\"name\":\"f\"}</tool_call>\n```",
        "text=```\nlet x = 1;\n<tool_call>{\"name\":\"f\"}</tool_call>\n```",
    ),
    (
        "```\n<tool_call>{\"name\":\"f\"}</tool_call>\nis a call\n```",
        "text=```\n<tool_call>{\"name\":\"f\"}</tool_call>\nis a call\n```",
    ),
    ("So: `<tool_call>{\"name\":\"f\"}</tool_call>`.", "text=So: `<tool_call>{\"name\":\"f\"}</tool_call>`."),
    ("<tool_call>\n```json\n{\"name\":\"f\",\"args\":{\"a\":1}}\n```\n</tool_call>", "f{\"a\":1}"),
    ("<tool_call>```{\"name\":\"f\"}```</tool_call>", "f{}"),
    ("<tool_call>```json{\"name\":\"f\"}```</tool_call>", "f{}"),
    ("<|tool_call>\n```\ncall:f{a:1}\n```\n<tool_call|>", "f{\"a\":1}"),
    ("<function=f>\n```json\n{\"a\":1}\n```\n</function>", "f{\"a\":1}"),
    ("```json\n<tool_call>\n```json\n{\"name\":\"f\"}\n```\n</tool_call>\n```", "f{}"),
    ("```json\n{\"name\":\"f\",\"args\":{}}\n```", "text=```json\n{\"name\":\"f\",\"args\":{}}\n```"),
    (
        "<tool_call>{\"name\":\"f\",\"args\":{\"s\":\"```\\n<tool_call>\\n```\"}}</tool_call>",
        r#"f{"s":"```\n<tool_call>\n```"}"#,
    ),
    ("<tool_call>\n```json\n{\"name\":\"f\"}", "f{}"),
    ("<tool_call>\n`{\"name\":\"f\"}`\n</tool_call>", "errors=1"),
];

const STRINGS: Cases = &[
    (r#"<tool_call>{"name":"f","arguments":"{\"a\":1}"}</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>{"name":"f","arguments":"{}"}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"name":"f","arguments":""}</tool_call>"#, "f{}"),
    (r#"<tool_call>{"name":"f","arguments":" {\"a\": \"</tool_call>\"} "}</tool_call>"#, r#"f{"a":"</tool_call>"}"#),
    (r#"<tool_call>{"name":"f","arguments":"{a: 'b',}"}</tool_call>"#, r#"f{"a":"b"}"#),
    (r#"<tool_call>{"name":"f","arguments":'{"a":"b"}'}</tool_call>"#, r#"f{"a":"b"}"#),
    (r#"<tool_call>{"name":"f","arguments":"[1]"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","arguments":"ls"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","arguments":"{\"a\":"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","arguments":"{} x"}</tool_call>"#, "errors=1"),
    (r#"[TOOL_CALLS][{"name":"f","arguments":"{\"a\":1}"}]"#, r#"f{"a":1}"#),
];

const LENIENT: Cases = &[
    ("<tool_call>{name: \"f\", args: {a: 1}}</tool_call>", r#"f{"a":1}"#),
    ("<tool_call>{name: 'f', args: {'a': 'b'}}</tool_call>", r#"f{"a":"b"}"#),
    ("<tool_call>{name:\"f\",args:{a-b: 1}}</tool_call>", r#"f{"a-b":1}"#),
    ("<tool_call>{name:\"f\",args:{a1: 1, 2b: 2, 3: 3}}</tool_call>", r#"f{"a1":1,"2b":2,"3":3}"#),
    ("<tool_call>{name:\"f\",args:{größe: 1, 名前: 2}}</tool_call>", r#"f{"größe":1,"名前":2}"#),
    ("<tool_call>{name\n:\"f\",args\n\n: {a \t: 1}}</tool_call>", r#"f{"a":1}"#),
    ("<tool_call>{\"name\"\n:\n\"f\"}</tool_call>", "f{}"),
    ("<tool_call>{name:\"f\",args:{$a: 1, a.b: 2, _c: 3}}</tool_call>", r#"f{"$a":1,"a.b":2,"_c":3}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"a\":1,},}</tool_call>", r#"f{"a":1}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"a\":[1,2,],}}</tool_call>", r#"f{"a":[1,2]}"#),
    (
        "<tool_call>{\"name\":\"f\",\"args\":{\"a\":True,\"b\":False,\"c\":None}}</tool_call>",
        r#"f{"a":true,"b":false,"c":null}"#,
    ),
    ("<tool_call>{\"name\":\"f\",\"args\":{true: 1, None: 2}}</tool_call>", r#"f{"true":1,"None":2}"#),
    ("<tool_call>{\"name\":\"f\", // why\n\"args\":{}}</tool_call>", "f{}"),
    ("<tool_call>{\"name\":\"f\", # why\n\"args\":{}}</tool_call>", "f{}"),
    ("<tool_call>{\"name\":\"f\" /* a * b / c */, \"args\" /**/ : /***/ {}}</tool_call>", "f{}"),
    ("<tool_call>{\"name\":\"f\", // </tool_call>\n\"args\":{}}</tool_call>", "f{}"),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"u\":\"http://a/b#c\"}}</tool_call>", r#"f{"u":"http://a/b#c"}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"s\":'it\\'s'}}</tool_call>", r#"f{"s":"it's"}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"s\":'say \"x\"'}}</tool_call>", r#"f{"s":"say \"x\""}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"s\":\"it's\"}}</tool_call>", r#"f{"s":"it's"}"#),
    (
        "<tool_call>{\"name\":\"f\",\"args\":{\"n\":-1.5e3,\"m\":0,\"k\":1E-2}}</tool_call>",
        r#"f{"n":-1500.0,"m":0,"k":0.01}"#,
    ),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"n\":18446744073709551615}}</tool_call>", r#"f{"n":18446744073709551615}"#),
    (
        "<tool_call>{\"name\":\"f\",\"args\":{\"s\":\"\\/\\b\\f\\n\\r\\t\\\\\\\"\"}}</tool_call>",
        r#"f{"s":"/\b\f\n\r\t\\\""}"#,
    ),
    ("<tool_call>{\u{a0}\"name\":\"f\"}</tool_call>", "f{}"),
    ("<tool_call>{name: <|\"|>f<|\"|>, args: {<|\"|>a b<|\"|>: 1}}</tool_call>", r#"f{"a b":1}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"\":1}}</tool_call>", r#"f{"":1}"#),
];

const UNSURE: Cases = &[
    // Left out, or too much.
    (r#"<tool_call>{"name":"f" "args":{}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{}}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{,}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":[1,,2]}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a"}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":[1}}]</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":(1)}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a"=1}}</tool_call>"#, "errors=1"),
    // Two readings.
    (r#"<tool_call>{"name":"f","name":"g"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":1,"a":2}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":1},"arguments":{"a":2}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","path":"/tmp"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{},"path":"/tmp"}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":ls}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"a":undefined}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":f}</tool_call>"#, "errors=1"),
    // No call.
    (r#"<tool_call>{}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":""}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":5}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"args":{}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":[1]}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":5}</tool_call>"#, "errors=1"),
    (r#"<tool_call>"f"</tool_call>"#, "errors=1"),
    (r#"<tool_call>f(a=1)</tool_call>"#, r#"f{"a":1}"#),
    (r#"<tool_call>read the file</tool_call>"#, "errors=1"),
    // Numbers and strings that JSON does not have.
    (r#"<tool_call>{"name":"f","args":{"n":007}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":+1}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":.5}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":5.}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":0x10}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":1_000}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":NaN}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":1e999}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"n":123456789012345678901234567890}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"s":"\d"}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"s":"\ud83e"}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"s":"\u12"}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"s":'it's'}}</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f","args":{"s":"a"b"}}</tool_call>"#, "errors=1"),
    // Calls in a block that cannot be parsed are not made.
    (
        r#"<tool_call>{"name":"w" "args":{"s":'<tool_call>{"name":"rm"}</tool_call><tool_call>{"name":"rm"}</tool_call>'}}</tool_call>"#,
        "errors=1",
    ),
    (r#"<tool_call>I call: <tool_call>{"name":"f"}</tool_call></tool_call>"#, "errors=1"),
    (r#"<tool_call>oops</tool_call><tool_call>{"name":"f"}</tool_call>"#, "f{} errors=1"),
    (r#"<tool_call>{"name":"f"} and so on</tool_call>"#, "errors=1"),
    (r#"<tool_call>{"name":"f"}{"name":</tool_call>"#, "errors=1"),
];

const CUT_OFF: Cases = &[
    (r#"<tool_call>{"name":"f","args":{"a":1}}"#, r#"f{"a":1}"#),
    ("<tool_call>{\"name\":\"f\",\"args\":{\"a\":1}}\n", r#"f{"a":1}"#),
    (r#"<tool_call>{"name":"f","args":{"a":1}}</tool_ca"#, r#"f{"a":1}"#),
    (r#"<tool_call>[{"name":"f"},{"name":"g"}]"#, "f{} g{}"),
    (r#"<tool_call>{"name":"f","args":{"a":1}"#, r#"text=<tool_call>{"name":"f","args":{"a":1} errors=1"#),
    (r#"<tool_call>{"name":"f","args":{"a":"b"#, r#"text=<tool_call>{"name":"f","args":{"a":"b errors=1"#),
    (r#"<tool_call>{"name":"f","args":{"a":12"#, r#"text=<tool_call>{"name":"f","args":{"a":12 errors=1"#),
    (r#"<tool_call>[{"name":"f"}"#, r#"text=<tool_call>[{"name":"f"} errors=1"#),
    (r#"<tool_call>"#, "text=<tool_call> errors=1"),
    (r#"I use <tool_call> to call."#, "text=I use <tool_call> to call. errors=1"),
    (r#"<|tool_call>call:f{a:1"#, "text=<|tool_call>call:f{a:1 errors=1"),
    (r#"<|tool_call>call:f"#, "text=<|tool_call>call:f errors=1"),
    (r#"[TOOL_CALLS][{"name":"f"}"#, r#"text=[TOOL_CALLS][{"name":"f"} errors=1"#),
    (r#"[TOOL_CALLS]f[ARGS]{"a":"#, r#"text=[TOOL_CALLS]f[ARGS]{"a": errors=1"#),
    ("<function=f><parameter=a>x", "text=<function=f><parameter=a>x errors=1"),
    ("<function=f><parameter=a>x</parameter>", "text=<function=f><parameter=a>x</parameter> errors=1"),
    ("<tool_call><function=f><parameter=a>x</parameter></function>", r#"f{"a":"x"}"#),
    (r#"<|python_tag|>{"name":"f","parameters":{}"#, r#"text=<|python_tag|>{"name":"f","parameters":{} errors=1"#),
    ("[f(a=1)", "text=[f(a=1)"),
    ("[f(a=1), g(", "text=[f(a=1), g("),
    (
        r#"<tool_call>{"name":"f"}</tool_call><tool_call>{"name":"g","args":{"#,
        r#"f{} text=<tool_call>{"name":"g","args":{ errors=1"#,
    ),
];

const MISTRAL: Cases = &[
    (r#"[TOOL_CALLS][{"name":"f","arguments":{"a":1}}]"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "abcdefghi"}]"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS][{"name":"f","arguments":{}},{"name":"g","arguments":{}}]"#, "f{} g{}"),
    (r#"[TOOL_CALLS]f{"a":1}"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS]f[ARGS]{"a":1}"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a":1}"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS]f[ARGS]{"a":1}[TOOL_CALLS]g[ARGS]{}"#, r#"f{"a":1} g{}"#),
    (r#"Sure. [TOOL_CALLS]f[ARGS]{} Done."#, "f{} text=Sure.  Done."),
    (r#"[TOOL_CALLS]{"name":"f","arguments":{}}"#, "f{}"),
    (r#"[TOOL_CALLS] f [ARGS] {"a":1}"#, r#"f{"a":1}"#),
    (r#"[TOOL_CALLS][{"name":"f","arguments":{"s":"]"}}] end"#, r#"f{"s":"]"} text=end"#),
    (r#"[TOOL_CALLS][]"#, ""),
    (r#"[TOOL_CALLS]f{}</s>"#, "f{}"),
    (r#"[TOOL_CALLS]f{},"a":1}"#, r#"text=[TOOL_CALLS]f{},"a":1} errors=1"#),
    (r#"[TOOL_CALLS]f{} }"#, r#"text=[TOOL_CALLS]f{} } errors=1"#),
    (r#"[TOOL_CALLS]f{}x"#, r#"text=[TOOL_CALLS]f{}x errors=1"#),
    ("[TOOL_CALLS]f{}\n[x]", "f{} text=[x]"),
    (r#"[TOOL_CALLS]f[ARGS]"x""#, r#"text=[TOOL_CALLS]f[ARGS]"x" errors=1"#),
    (r#"[TOOL_CALLS]f[OTHER]{}"#, "text=[TOOL_CALLS]f[OTHER]{} errors=1"),
    (r#"[TOOL_CALLS]f g{}"#, "text=[TOOL_CALLS]f g{} errors=1"),
    (
        r#"[TOOL_CALLS][{"name":"w" "s":'<tool_call>{"name":"rm"}</tool_call>'}]"#,
        r#"text=[TOOL_CALLS][{"name":"w" "s":'<tool_call>{"name":"rm"}</tool_call>'}] errors=1"#,
    ),
    ("The mark `[TOOL_CALLS]` begins it.", "text=The mark `[TOOL_CALLS]` begins it."),
    ("[TOOL_CALL", "text=[TOOL_CALL"),
    ("[TOOLS] a [x] b", "text=[TOOLS] a [x] b"),
];

const FUNCTION: Cases = &[
    (r#"<function=f>{"a":1}</function>"#, r#"f{"a":1}"#),
    ("<function=f>\n{\"a\": 1}\n</function>", r#"f{"a":1}"#),
    ("<function=f>{}</function><function=g>{}</function>", "f{} g{}"),
    ("<function=f></function>", "f{}"),
    (r#"<function=f>{"s":"</function>"}</function>"#, r#"f{"s":"</function>"}"#),
    ("<function=f>{a: 'b',}</function>", r#"f{"a":"b"}"#),
    ("<function=f><parameter=a>x</parameter></function>", r#"f{"a":"x"}"#),
    ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>", r#"f{"a":"x"}"#),
    ("<tool_call><function=f></function><function=g></function></tool_call>", "f{} g{}"),
    (
        "<function=f>\n<parameter=a>\nx\ny\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>",
        r#"f{"a":"x\ny","b":2}"#,
    ),
    ("<function=f><parameter=a>[1, 2]</parameter></function>", r#"f{"a":[1,2]}"#),
    ("<function=f><parameter=a>{\"k\": null}</parameter></function>", r#"f{"a":{"k":null}}"#),
    ("<function=f><parameter=a>True</parameter></function>", r#"f{"a":true}"#),
    ("<function=f><parameter=a>{not json}</parameter></function>", r#"f{"a":"{not json}"}"#),
    ("<function=f><parameter=a>\"5\"</parameter></function>", r#"f{"a":"5"}"#),
    ("<function=f><parameter=a>\"x\"</parameter></function>", r#"f{"a":"\"x\""}"#),
    ("<function=f><parameter=a>007</parameter></function>", r#"f{"a":"007"}"#),
    ("<function=f><parameter=a>\n\n</parameter></function>", r#"f{"a":""}"#),
    ("<function=f><parameter=a>\n\n x \n\n</parameter></function>", r#"f{"a":"\n x \n"}"#),
    ("<function=f><parameter=a>if a < b && c > d</parameter></function>", r#"f{"a":"if a < b && c > d"}"#),
    ("<function=f><parameter=a></tool_call></parameter></function>", r#"f{"a":"</tool_call>"}"#),
    ("<function=f><parameter=a><think>x</think></parameter></function>", r#"f{"a":"<think>x</think>"}"#),
    ("<function=f><parameter=a b>1</parameter></function>", r#"f{"a b":1}"#),
    ("<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>", "errors=1"),
    ("<function=f><parameter=a>x<parameter=b>y</parameter></function>", "errors=1"),
    ("<function=f><parameter=a>x</function> <parameter=b>y</parameter></function>", "errors=1"),
    ("<function=f>text</function>", "errors=1"),
    ("<function=f>{\"a\":1}{\"b\":2}</function>", "errors=1"),
    ("<function=>{}</function>", "errors=1"),
    ("<function=f g>{}</function>", "errors=1"),
    ("<function=f><parameter=>x</parameter></function>", "errors=1"),
    ("<function=bad!>{}</function> <function=g>{}</function>", "g{} errors=1"),
];

const LLAMA: Cases = &[
    (r#"<|python_tag|>{"name":"f","parameters":{"a":1}}"#, r#"f{"a":1}"#),
    (r#"<|python_tag|>{"type": "function", "name": "f", "parameters": {"a": "1"}}<|eom_id|>"#, r#"f{"a":"1"}"#),
    (r#"<|python_tag|>{"name":"f","parameters":{}}; {"name":"g","parameters":{}}"#, "f{} g{}"),
    (r#"<|python_tag|>{"name":"f","parameters":{}};"#, "f{}"),
    (r#"<|python_tag|>{"name":"f","parameters":{}} Done."#, "f{} text=Done."),
    (r#"<|python_tag|>brave_search.call(query="weather in Oslo")"#, r#"brave_search{"query":"weather in Oslo"}"#),
    (r#"<|python_tag|>f(a=1, b=[True, None])"#, r#"f{"a":1,"b":[true,null]}"#),
    (r#"<|python_tag|>[f(a=1), g()]"#, r#"f{"a":1} g{}"#),
    (r#"<|python_tag|>[{"name":"f","parameters":{}}]"#, "f{}"),
    (r#"<|python_start|>[f(a="x")]<|python_end|>"#, r#"f{"a":"x"}"#),
    (r#"<|python_start|>[f(a="x")]<|python_end|> Done."#, r#"f{"a":"x"} text=Done."#),
    (r#"<|python_tag|>{"name":"f"}<tool_call>{"name":"g"}</tool_call>"#, "f{} g{}"),
    (
        r#"<|python_tag|>{"name":"f"},"parameters":{"a":1}}"#,
        r#"text=<|python_tag|>{"name":"f"},"parameters":{"a":1}} errors=1"#,
    ),
    (r#"<|python_tag|>print("hello")"#, r#"text=<|python_tag|>print("hello") errors=1"#),
    ("<|python_tag|>import os\nos.remove('x')", "text=<|python_tag|>import os\nos.remove('x') errors=1"),
    (
        r#"<|python_tag|>{"name":"f","parameters":"stock_symbol": "AAPL"}"#,
        r#"text=<|python_tag|>{"name":"f","parameters":"stock_symbol": "AAPL"} errors=1"#,
    ),
];

const PYTHONIC: Cases = &[
    (r#"[f(a="x")]"#, r#"f{"a":"x"}"#),
    (r#"[f(a="x", b=2), g()]"#, r#"f{"a":"x","b":2} g{}"#),
    (r#"[f(a='x')]"#, r#"f{"a":"x"}"#),
    (r#"[f(a={"k": [1, True]}, b=None)]"#, r#"f{"a":{"k":[1,true]},"b":null}"#),
    ("[\n  f(a=1),\n  g(b=2),\n]", r#"f{"a":1} g{"b":2}"#),
    ("Calls:\n  [f(a=1)]  \nDone.", "f{\"a\":1} text=Calls:\n  \nDone."),
    (r#"[f(a="]")]"#, r#"f{"a":"]"}"#),
    (r#"[f(a="<tool_call>")]"#, r#"f{"a":"<tool_call>"}"#),
    ("[f(a=1)]<|eot_id|>", r#"f{"a":1}"#),
    ("Done.<|im_end|>", "text=Done."),
    ("Done.</s>\n", "text=Done."),
    ("The token <|im_end|> ends it.", "text=The token <|im_end|> ends it."),
    ("[f(a=1)]\n[g()]", r#"f{"a":1} g{}"#),
    ("<think>so</think>[f(a=1)]", r#"f{"a":1} thinking=so"#),
    ("text [f(a=1)]", "text=text [f(a=1)]"),
    ("[f(a=1)] text", "text=[f(a=1)] text"),
    ("[f(1)]", "text=[f(1)]"),
    ("[f(a)]", "text=[f(a)]"),
    ("[f(a=b)]", "text=[f(a=b)]"),
    ("[f(a=g(1))]", "text=[f(a=g(1))]"),
    ("[]", "text=[]"),
    ("[x](http://a)", "text=[x](http://a)"),
    ("[f(a=1)](http://a)", "text=[f(a=1)](http://a)"),
    ("[1, 2]", "text=[1, 2]"),
    ("- [ ] todo\n- [x] done", "text=- [ ] todo\n- [x] done"),
    ("[f(a=\"x\ny\")]", "text=[f(a=\"x\ny\")]"),
    ("[f(a=1) # why\n]", "text=[f(a=1) # why\n]"),
    ("[see <tool_call>{\"name\":\"f\"}</tool_call>]", "f{} text=[see ]"),
    ("[f(a=\"<think>\") no</think> b", "text=b thinking=[f(a=\"<think>\") no"),
    ("[f(a=\"<|tool_call>call:rm{}<tool_call|>\"", "text=[f(a=\"<|tool_call>call:rm{}<tool_call|>\" errors=1"),
    (
        "[f(a=\"<|tool_call>call:rm{}<tool_call|>\")] is it",
        "text=[f(a=\"<|tool_call>call:rm{}<tool_call|>\")] is it errors=1",
    ),
    (
        "[f(=1, a=\"<|tool_call>call:rm{}<tool_call|>\")]\n<|tool_call>call:g{}<tool_call|>",
        "g{} text=[f(=1, a=\"<|tool_call>call:rm{}<tool_call|>\")] errors=1",
    ),
    ("[f(a=\n<|tool_call>call:g{}<tool_call|>", "g{} text=[f(a="),
    ("[f(a=1),\n[g()]", "g{} text=[f(a=1),"),
    ("[f(a=1)] <tool_call>{\"name\":\"g\"}</tool_call>", r#"f{"a":1} g{}"#),
    ("[f(a=1)] [TOOL_CALLS]g{}", r#"f{"a":1} g{}"#),
    ("[f(a=1)] <b>", "text=[f(a=1)] <b>"),
    ("[f(a-b=1)]", r#"f{"a-b":1}"#),
    ("[ns.f(a=1)]", r#"ns.f{"a":1}"#),
    ("[for x in y]", "text=[for x in y]"),
];

const THINKING: Cases = &[
    ("<think>hm</think>Answer.", "text=Answer. thinking=hm"),
    ("<thinking>hm</thinking>Answer.", "text=Answer. thinking=hm"),
    ("<THINK>hm</Think>Answer.", "text=Answer. thinking=hm"),
    ("<ThInKiNg>hm</THINKING>Answer.", "text=Answer. thinking=hm"),
    ("<think budget=\"10\" mode='x'>hm</think>Answer.", "text=Answer. thinking=hm"),
    ("<thinking\nkind=a>hm</thinking>Answer.", "text=Answer. thinking=hm"),
    ("<think/>Answer.", "text=Answer."),
    ("<think></think>Answer.", "text=Answer."),
    ("<|channel>thought\nhm\n<channel|>Answer.", "text=Answer. thinking=hm"),
    ("<|channel>thought<channel|>Answer.", "text=Answer."),
    ("<|channel>final x", "text=<|channel>final x"),
    (r#"<think><tool_call>{"name":"f"}</tool_call></think>"#, r#"thinking=<tool_call>{"name":"f"}</tool_call>"#),
    (r#"<think>a</think><tool_call>{"name":"f"}</tool_call>"#, "f{} thinking=a"),
    (r#"<tool_call>{"name":"f"}</tool_call><think>a"#, "f{} thinking=a"),
    ("<think>a<think>b</think>c</think>d", "text=d thinking=a<think>b</think>c"),
    ("<think>a<thinking>b</thinking>c</think>d", "text=d thinking=a<thinking>b</thinking>c"),
    ("<thinking>a</think>b</thinking>c", "text=c thinking=a</think>b"),
    (
        r#"<think>a<think>b</think><tool_call>{"name":"f"}</tool_call>"#,
        r#"thinking=a<think>b</think><tool_call>{"name":"f"}</tool_call>"#,
    ),
    (
        r#"<think>I could <tool_call>{"name":"f"}</tool_call>"#,
        r#"thinking=I could <tool_call>{"name":"f"}</tool_call>"#,
    ),
    ("<think>unclosed", "thinking=unclosed"),
    ("<|channel>thought unclosed <tool_call>", "thinking=unclosed <tool_call>"),
    ("<think>a</think>b<think>c</think>d", "text=bd thinking=a\nc"),
    ("<think>1 < 2 </thin </think>x", "text=x thinking=1 < 2 </thin"),
    ("<thinker>x</thinker>", "text=<thinker>x</thinker>"),
    ("<think", "text=<think"),
    ("a <th b", "text=a <th b"),
    (r#"<tool_call>{"name":"f","args":{"s":"<think>x</think>"}}</tool_call>"#, r#"f{"s":"<think>x</think>"}"#),
    (r#"<tool_call><think>which?</think>{"name":"f"}</tool_call>"#, "f{} thinking=which?"),
    (r#"<tool_call>{"name":"f",<think>which?</think>"args":{}}</tool_call>"#, "f{} thinking=which?"),
    ("<tool<think>x</think>_call>", "text=<tool_call> thinking=x"),
    // The open tag stood in the prompt.
    ("hm</think>Answer.", "text=Answer. thinking=hm"),
    (
        r#"hm <tool_call>{"name":"rm"}</tool_call></think><tool_call>{"name":"f"}</tool_call>"#,
        r#"f{} thinking=hm <tool_call>{"name":"rm"}</tool_call>"#,
    ),
    ("hm<channel|>Answer.", "text=Answer. thinking=hm"),
    (r#"I use <tool_call> tags</think><tool_call>{"name":"f"}</tool_call>"#, "f{} thinking=I use <tool_call> tags"),
    ("<think>a</think>b</think>c", "text=b</think>c thinking=a"),
    ("[f(a=1\n</think>Answer.", "text=Answer. thinking=[f(a=1"),
];

const MIXED: Cases = &[
    (
        r#"<tool_call>{"name":"a"}</tool_call> <|tool_call>call:b{}<tool_call|> <|tool_call|>call:c{}<|/tool_call|>"#,
        "a{} b{} c{}",
    ),
    (r#"[TOOL_CALLS]a{} <function=b>{}</function> <tool_call>{"name":"c"}</tool_call>"#, "a{} b{} c{}"),
    ("<function=a></function>\n[b()]\n<|python_tag|>{\"name\":\"c\"}", "a{} b{} c{}"),
    ("<tool_call>{\"name\":\"a\"}</tool_call>[TOOL_CALLS]b{}", "a{} b{}"),
    // In tags a `[` begins a list.
    ("<tool_call>{\"name\":\"a\"}[TOOL_CALLS]b{}</tool_call>", "errors=1"),
    ("x <tool_call>{\"name\":\"a\"}</tool_call> y <function=b>{}</function> z", "a{} b{} text=x  y  z"),
    ("<tool_call>call:a{}, {\"name\":\"b\"}, <function=c></function></tool_call>", "a{} b{} c{}"),
    ("<|tool_call>call:a{}<|python_tag|>b()<tool_call>{\"name\":\"c\"}", "a{} b{} c{}"),
];

#[track_caller]
fn check(cases: Cases) {
    for (text, expected) in cases {
        let whole = parse(text, None);
        assert_eq!(show(&whole), *expected, "{text}\n{:?}", whole.errors);
        let mut parser = CallParser::new(KnownTools::any());
        let mut pieces: Vec<_> = text.chars().flat_map(|c| parser.push(c.encode_utf8(&mut [0; 4]))).collect();
        pieces.extend(parser.finish());
        assert_eq!(collect(pieces), whole, "one character at a time: {text}");
    }
}

fn show(parsed: &ParsedPrompt) -> String {
    let mut parts: Vec<String> = parsed.calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
    if !parsed.text.is_empty() {
        parts.push(format!("text={}", parsed.text));
    }
    if !parsed.thinking.is_empty() {
        parts.push(format!("thinking={}", parsed.thinking));
    }
    if !parsed.errors.is_empty() {
        parts.push(format!("errors={}", parsed.errors.len()));
    }
    parts.join(" ")
}

#[test]
fn json_in_tags_is_called() {
    check(TAGS);
}

#[test]
fn gemma_s_calls_are_called() {
    check(GEMMA);
}

#[test]
fn lists_hold_several_calls() {
    check(LISTS);
}

#[test]
fn fences_are_no_obstacle() {
    check(FENCES);
}

#[test]
fn arguments_may_be_a_string() {
    check(STRINGS);
}

#[test]
fn json_may_be_written_carelessly() {
    check(LENIENT);
}

#[test]
fn what_is_not_certain_is_an_error() {
    check(UNSURE);
}

#[test]
fn the_text_may_end_anywhere() {
    check(CUT_OFF);
}

#[test]
fn mistral_s_calls_are_called() {
    check(MISTRAL);
}

#[test]
fn function_tags_are_called() {
    check(FUNCTION);
}

#[test]
fn llama_s_python_tags_are_called() {
    check(LLAMA);
}

#[test]
fn lines_of_python_calls_are_called() {
    check(PYTHONIC);
}

#[test]
fn thinking_is_taken_out_first() {
    check(THINKING);
}

#[test]
fn families_may_be_mixed() {
    check(MIXED);
}

#[test]
fn the_table_is_long() {
    let all = [
        TAGS, GEMMA, LISTS, FENCES, STRINGS, LENIENT, UNSURE, CUT_OFF, MISTRAL, FUNCTION, LLAMA, PYTHONIC, THINKING,
        MIXED,
    ];
    assert!(all.iter().map(|cases| cases.len()).sum::<usize>() >= 200);
}

#[test]
fn errors_can_be_sent_back() {
    let errors = |text: &str| parse(text, None).errors.join("\n");
    let said = [
        (r#"<tool_call>{"name":"f" "args":{}}</tool_call>"#, "expected `,` or `}`, found '\"'"),
        (r#"<tool_call>{"name":"f","args":{}</tool_call>"#, "expected `,` or `}`, found '<'"),
        (r#"<tool_call>{"name":"f","a":1}</tool_call>"#, "the key `a` belongs in its arguments"),
        (r#"<tool_call>{"name":"f","args":{"a":1,"a":2}}</tool_call>"#, "the key \"a\" is given twice"),
        (r#"<tool_call>{"args":{}}</tool_call>"#, "it has no `name`"),
        (r#"<tool_call></tool_call>"#, "the block is empty"),
        (r#"<tool_call>{"name":"f","args":{"s":"\d"}}</tool_call>"#, r"write a backslash as `\\`"),
        (r#"<tool_call>{"name":"f","args":{"s":ls}}</tool_call>"#, "`ls` is neither quoted nor"),
        (r#"<tool_call>{"name":"f","args":{"#, "the text ends in the middle of the call"),
        ("<function=f><parameter=a>x<parameter=b>y</parameter></function>", "is its </parameter> missing?"),
        ("<|python_tag|>print('x')", "a key"),
    ];
    for (text, words) in said {
        let error = errors(text);
        assert!(error.contains(words), "{error}");
        let begin: String = text.chars().take(10).collect();
        assert!(error.contains(&begin), "{error}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| {
        let text = format!(
            r#"<tool_call>{{"name":"f","args":{{"a":{}{}}}}}</tool_call>"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        parse(&text, None)
    };
    assert_eq!(nested(126).calls.len(), 1);
    assert_eq!(nested(127).errors.len(), 1);
    assert_eq!(nested(100_000).calls.len(), 0);
}

#[test]
fn calls_of_unknown_tools_are_errors() {
    let names = ["read".to_owned(), "write".to_owned()];
    let text = r#"<tool_call>{"name":"reed"}</tool_call><tool_call>{"name":"read"}</tool_call>"#;
    let parsed = parse(text, Some(&names));
    assert_eq!(parsed.calls.len(), 1);
    assert!(parsed.errors[0].ends_with("there is no tool `reed`; there are: read, write"), "{:?}", parsed.errors);
    assert!(parse(text, Some(&[])).errors[0].ends_with("there are no tools"));
    // A line that names no tool is prose; one that names some is a mistake.
    assert_eq!(show(&parse("[foo(x=1)]", Some(&names))), "text=[foo(x=1)]");
    assert_eq!(show(&parse("[read(x=1), foo()]", Some(&names))), r#"read{"x":1} errors=1"#);
    assert_eq!(show(&parse("[read(x=1]", Some(&names))), "text=[read(x=1] errors=1");
    assert_eq!(show(&parse("[read(x=1)", Some(&names))), "text=[read(x=1) errors=1");
    assert_eq!(show(&parse("[read(x=1)] reads", Some(&names))), "text=[read(x=1)] reads errors=1");
    assert_eq!(show(&parse("[read](x)", Some(&names))), "text=[read](x)");
    for (line, errors) in [("read(x)", " errors=1"), ("print(read(x=1)", " errors=1"), ("foo(x=1)", "")] {
        let text = format!("```tool_code\n{line}\n```");
        assert_eq!(show(&parse(&text, Some(&names))), format!("text={text}{errors}"));
    }
}

#[test]
fn schemas_tell_strings_from_numbers() {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "integer"}, "both": {"type": ["string", "null"]}, "any": {},
    }});
    let tool = Tool {
        name: ToolName::parse("w").unwrap(),
        label: String::new(),
        description: String::new(),
        input_schema: schema,
        output_schema: None,
        source: Source { kind: SourceKind::Builtin, name: String::new(), path: None },
        parallelizable: false,
        permissions: Vec::new(),
        cacheable: false,
        timeout_ms: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    };
    let read = |key: &str, value: &str| {
        let text = format!("<function=w><parameter={key}>\n{value}\n</parameter></function>");
        show(&parse_with(&text, KnownTools::tools(std::slice::from_ref(&tool))))
    };
    assert_eq!(read("s", r#"{"a": 1}"#), r#"w{"s":"{\"a\": 1}"}"#);
    assert_eq!(read("s", "5"), r#"w{"s":"5"}"#);
    assert_eq!(read("n", "5"), r#"w{"n":5}"#);
    assert_eq!(read("n", "five"), "errors=1");
    assert_eq!(read("both", "null"), r#"w{"both":null}"#);
    assert_eq!(read("both", "x"), r#"w{"both":"x"}"#);
    assert_eq!(read("any", "[1]"), r#"w{"any":[1]}"#);
    assert_eq!(read("unknown", "5"), r#"w{"unknown":5}"#);
}

#[test]
fn a_parser_may_begin_inside_of_thinking() {
    let mut parser = CallParser::inside_thinking(KnownTools::any());
    let mut pieces =
        parser.push(r#"hm <tool_call>{"name":"rm"}</tool_call></thinking><tool_call>{"name":"f"}</tool_call>"#);
    pieces.extend(parser.finish());
    assert_eq!(show(&collect(pieces)), r#"f{} thinking=hm <tool_call>{"name":"rm"}</tool_call>"#);
}

#[test]
fn a_stream_hands_out_a_call_once_nothing_can_take_it_back() {
    use toold_adapters::parse::ParsedPiece;
    let call = "<tool_call>{\"name\":\"f\"}</tool_call>";
    let is_call = |piece: &ParsedPiece| matches!(piece, ParsedPiece::Call(_));
    let mut parser = CallParser::new(KnownTools::any());
    assert_eq!(parser.push(&format!("hm {call} so")), [ParsedPiece::Text("hm ".to_owned())]);
    let mut taken_back = CallParser::new(KnownTools::any());
    taken_back.push(&format!("hm {call}"));
    assert_eq!(taken_back.push("</think>"), [ParsedPiece::WasThinking(format!("hm {call}"))]);
    assert!(taken_back.push(call).iter().any(is_call), "thinking has ended");
    assert!(parser.finish().iter().any(is_call), "the answer has ended");
    let mut thought = CallParser::new(KnownTools::any());
    thought.push("<think>hm</think>");
    assert!(thought.push(call).iter().any(is_call));
}

#[test]
fn a_stream_without_thinking_hands_out_a_call_as_soon_as_its_block_is_closed() {
    use toold_adapters::parse::ParsedPiece;
    let mut parser = CallParser::outside_thinking(KnownTools::any());
    assert_eq!(parser.push("Now <tool"), [ParsedPiece::Text("Now ".to_owned())]);
    assert_eq!(parser.push("_call>{\"name\":\"f\"}</tool_call"), []);
    assert!(matches!(parser.push(">").as_slice(), [ParsedPiece::Call(call)] if call.name == "f"));
    assert_eq!(parser.push(" on"), [ParsedPiece::Text(" on".to_owned())]);
    assert_eq!(parser.finish(), []);
}
