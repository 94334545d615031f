//! Calls as each family writes them: the inverse of [`crate::parse`].

use serde_json::{Map, Value, json};
use toold_proto::prompt::ParsedCall;

use crate::families::Family;
use crate::parse::lenient_json::{STRING_MARKS, is_key_char};
use crate::parse::raw_value;
use crate::tag_style::{TagStyle, ToolTags};

/// The calls as a model of this family would have written them, for the history that is shown to
/// it. [`crate::parse::parse_with`] reads them back as they were, as long as the names are names of known
/// tools and the arguments are objects. Empty without calls.
pub fn render_calls(family: Family, calls: &[ParsedCall]) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let each = |write: &dyn Fn(&ParsedCall) -> String, between: &str| {
        calls.iter().map(write).collect::<Vec<_>>().join(between)
    };
    let objects = |key: &str| calls.iter().map(|call| object(call, key)).collect::<Vec<_>>();
    let list = |key: &str| Value::Array(objects(key));
    match family {
        Family::Tags => each(&|call| tagged(&object(call, "args").to_string()), "\n"),
        Family::Hermes => each(&|call| tagged(&object(call, "arguments").to_string()), "\n"),
        Family::Qwen | Family::Ernie45 => each(&|call| tagged(&format!("\n{}\n", object(call, "arguments"))), "\n"),
        Family::Gemma => each(&|call| gemma(call, ["<|tool_call>", "<tool_call|>"], STRING_MARKS[0]), ""),
        Family::FunctionGemma => {
            each(&|call| gemma(call, ["<start_function_call>", "<end_function_call>"], STRING_MARKS[1]), "")
        }
        Family::Mistral => format!("[TOOL_CALLS]{}", list("arguments")),
        Family::MistralArgs => each(&|call| format!("[TOOL_CALLS]{}[ARGS]{}", call.name, call.arguments), ""),
        Family::Llama => format!("<|python_tag|>{}", each(&|call| object(call, "parameters").to_string(), "; ")),
        Family::Llama3 => each(&|call| object(call, "parameters").to_string(), "; "),
        Family::Llama4 => format!("<|python_start|>[{}]<|python_end|>", each(&pythonic, ", ")),
        Family::Pythonic => format!("[{}]", each(&pythonic, ", ")),
        Family::Lfm2 => format!("<|tool_call_start|>[{}]<|tool_call_end|>", each(&pythonic, ", ")),
        Family::Olmo3 => format!("<function_calls>\n{}\n</function_calls>", each(&pythonic, "\n")),
        Family::Function => each(&function, "\n"),
        Family::QwenCoder => each(&|call| tagged(&format!("\n{}\n", qwen_coder(call))), "\n"),
        Family::SeedOss => each(&|call| format!("<seed:tool_call>\n{}\n</seed:tool_call>", qwen_coder(call)), "\n"),
        Family::DeepseekV3 => {
            let each = each(
                &|call| deepseek(&format!("function<｜tool▁sep｜>{}\n```json\n{}\n```", call.name, call.arguments)),
                "\n",
            );
            format!("<｜tool▁calls▁begin｜>{each}<｜tool▁calls▁end｜>")
        }
        Family::DeepseekV31 => {
            let each = each(&|call| deepseek(&format!("{}<｜tool▁sep｜>{}", call.name, call.arguments)), "");
            format!("<｜tool▁calls▁begin｜>{each}<｜tool▁calls▁end｜>")
        }
        Family::DeepseekV32 => {
            let each = each(&|call| element(call, TagStyle::Dsml), "\n");
            format!("<｜DSML｜function_calls>\n{each}\n</｜DSML｜function_calls>")
        }
        Family::Glm => each(&|call| pairs(call, &GLM_TAGS), "\n"),
        Family::KimiK2 => {
            let each = calls.iter().enumerate().map(|(number, ParsedCall { name, arguments })| {
                format!("<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>")
            });
            format!("<|tool_calls_section_begin|>{}<|tool_calls_section_end|>", each.collect::<String>())
        }
        Family::KimiK3 => {
            let each = calls.iter().enumerate().map(|(place, call)| kimi_k3(call, place + 1));
            format!("<|open|>tools<|sep|>{}<|close|>tools<|sep|>", each.collect::<String>())
        }
        Family::MinimaxM1 => {
            format!("<tool_calls>\n{}\n</tool_calls>", each(&|call| object(call, "arguments").to_string(), "\n"))
        }
        Family::MinimaxM2 => {
            let each = each(&|call| element(call, TagStyle::Invoke), "\n");
            format!("<minimax:tool_call>\n{each}\n</minimax:tool_call>")
        }
        Family::MinimaxM3 => {
            let each = each(&minimax_m3, "\n");
            format!("{M3}<tool_call>\n{each}\n{M3}</tool_call>")
        }
        Family::Anthropic => {
            format!("<function_calls>\n{}\n</function_calls>", each(&|call| element(call, TagStyle::Invoke), "\n"))
        }
        Family::Minicpm => each(&|call| element(call, TagStyle::Function), "\n"),
        Family::Step3 => {
            let each = each(
                &|call| {
                    format!(
                        "<｜tool_call_begin｜>function<｜tool_sep｜>{}<｜tool_call_end｜>",
                        element(call, TagStyle::Step)
                    )
                },
                "\n",
            );
            format!("<｜tool_calls_begin｜>{each}<｜tool_calls_end｜>")
        }
        Family::GptOss => {
            let message = |ParsedCall { name, arguments }: &ParsedCall| {
                format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>")
            };
            each(&message, "<|start|>assistant")
        }
        Family::CohereCommand => {
            let list = calls.iter().enumerate().map(|(number, ParsedCall { name, arguments })| {
                json!({"tool_call_id": number.to_string(), "tool_name": name, "parameters": arguments})
            });
            format!("<|START_ACTION|>{}<|END_ACTION|>", Value::Array(list.collect()))
        }
        Family::Hunyuan | Family::Jamba => format!("<tool_calls>{}</tool_calls>", list("arguments")),
        Family::Longcat => {
            each(&|call| format!("<longcat_tool_call>\n{}\n</longcat_tool_call>", object(call, "arguments")), "\n")
        }
        Family::Phi4 => format!("<|tool_call|>{}<|/tool_call|>", list("arguments")),
        Family::Phi4Mini => format!("functools{}", list("arguments")),
        Family::Internlm => {
            each(&|call| format!("<|action_start|><|plugin|>{}<|action_end|>", object(call, "parameters")), "\n")
        }
        Family::Xlam => list("arguments").to_string(),
        Family::Apertus => {
            let list = calls.iter().map(|call| json!({&call.name: call.arguments}));
            format!("<|tools_prefix|>{}<|tools_suffix|>", Value::Array(list.collect()))
        }
        Family::Gigachat => {
            format!("function call<|role_sep|>\n{}", each(&|call| object(call, "arguments").to_string(), "\n"))
        }
        Family::Granite => each(&|call| format!("<function_call> {}", object(call, "arguments")), "\n"),
        Family::Nemotron => format!("<TOOLCALL>{}</TOOLCALL>", list("arguments")),
        Family::HunyuanV3 => {
            format!("<tool_calls>\n{}\n</tool_calls>", each(&|call| pairs(call, &HUNYUAN_V3_TAGS), "\n"))
        }
        Family::K2Horizon => {
            format!("<ifm|tool_calls>\n{}\n</ifm|tool_calls>", each(&|call| pairs(call, &K2_HORIZON_TAGS), "\n"))
        }
        Family::SolarOpen => each(&|call| pairs(call, &SOLAR_TAGS), "\n"),
        Family::Plamo3 => {
            let each = each(&plamo_3, "");
            format!("<|plamo:begin_tool_requests:plamo|>{each}<|plamo:end_tool_requests:plamo|>")
        }
        Family::Inkling => {
            let message = |call: &ParsedCall| {
                let (name, object) = (&call.name, object(call, "args"));
                format!("<|message_model|>{name}<|content_invoke_tool_json|>{object}<|end_message|>")
            };
            each(&message, "")
        }
        Family::Muse => {
            let message = |call: &ParsedCall| {
                let (name, element) = (&call.name, element(call, TagStyle::Atem));
                format!(
                    "<|start|>assistant to={name}<|message|><atem:function_calls>\n{element}\n</atem:function_calls><|eom|>"
                )
            };
            each(&message, "")
        }
        Family::Dots => {
            each(&|call| format!("<dots_function_call>{}</dots_function_call>", element(call, TagStyle::Invoke)), "\n")
        }
        Family::Pangu => format!("<|tool_call_start|>{}<|tool_call_end|>", list("arguments")),
        Family::HyperclovaX => format!("-> tool/function_call\n{}", list("arguments")),
    }
}

fn object(call: &ParsedCall, key: &str) -> Value {
    json!({"name": call.name, key: call.arguments})
}

fn arguments(call: &ParsedCall) -> impl Iterator<Item = (&String, &Value)> {
    call.arguments.as_object().into_iter().flatten()
}

fn tagged(content: &str) -> String {
    format!("<tool_call>{content}</tool_call>")
}

fn function(call: &ParsedCall) -> String {
    format!("<function={}>{}</function>", call.name, call.arguments)
}

fn deepseek(content: &str) -> String {
    format!("<｜tool▁call▁begin｜>{content}<｜tool▁call▁end｜>")
}

/// In a style that names tools and arguments in attributes.
fn element(call: &ParsedCall, style: TagStyle) -> String {
    let ToolTags { open, close, parameter, parameter_close } = style.tags();
    // An attribute says whether a value is a string.
    let is_typed = style == TagStyle::Dsml;
    let mut text = format!("{open}name=\"{}\">", call.name);
    // Such a key cannot stand in an attribute.
    if arguments(call).any(|(key, _)| !fits_attribute(key)) {
        return format!("{text}{}{close}", call.arguments);
    }
    text.push('\n');
    for (key, value) in arguments(call) {
        let own = [parameter_close, parameter, close, open].map(str::trim_end);
        let (is_text, written) = match value {
            Value::String(text) if is_typed && !own.iter().any(|tag| text.contains(tag)) => (true, text.clone()),
            value if is_typed => (false, value.to_string().replace('<', "\\u003c")),
            value => (false, raw_value::write_between(value, &own)),
        };
        let attribute = if is_typed { format!(" string=\"{is_text}\"") } else { String::new() };
        text.push_str(&format!("{parameter}name=\"{}\"{attribute}>{written}{parameter_close}\n", escaped(key)));
    }
    text + close
}

fn fits_attribute(key: &str) -> bool {
    !key.is_empty() && key.len() <= 200
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The tags around the name of a tool, and around each key and value.
struct WrittenPairs {
    open: &'static str,
    name_end: &'static str,
    key: &'static str,
    between: &'static str,
    value_close: &'static str,
    close: &'static str,
    /// Marks that would end a value, or make its end look missing.
    own: [&'static str; 3],
}

const GLM_TAGS: WrittenPairs = WrittenPairs {
    open: "<tool_call>",
    name_end: "",
    key: "<arg_key>",
    between: "</arg_key>\n<arg_value>",
    value_close: "</arg_value>",
    close: "</tool_call>",
    own: ["<arg_key>", "<arg_value>", "</arg_value>"],
};

const HUNYUAN_V3_TAGS: WrittenPairs = WrittenPairs { name_end: "<tool_sep>", ..GLM_TAGS };

const K2_HORIZON_TAGS: WrittenPairs = WrittenPairs {
    open: "<ifm|tool_call>",
    name_end: "",
    key: "<ifm|arg_key>",
    between: "</ifm|arg_key><ifm|arg_value>",
    value_close: "</ifm|arg_value>",
    close: "</ifm|tool_call>",
    own: ["<ifm|arg_key>", "<ifm|arg_value>", "</ifm|arg_value>"],
};

const SOLAR_TAGS: WrittenPairs = WrittenPairs {
    open: "<|tool_call:start|>",
    name_end: "",
    key: "<|tool_arg:start|>",
    between: "<|tool_arg:value|>",
    value_close: "<|tool_arg:end|>",
    close: "<|tool_call:end|>",
    own: ["<|tool_arg:start|>", "<|tool_arg:value|>", "<|tool_arg:end|>"],
};

fn pairs(call: &ParsedCall, tags: &WrittenPairs) -> String {
    let WrittenPairs { open, name_end, key: key_open, between, value_close, close, own } = tags;
    // Such a key cannot stand between tags.
    let fits =
        |key: &String| !key.is_empty() && key.len() <= 200 && key.trim() == key && !key.contains(['<', '[', ']']);
    // A name alone is a call only if the tools are known.
    if !arguments(call).all(|(key, _)| fits(key)) || arguments(call).next().is_none() {
        return format!("{open}{}{close}", object(call, "arguments"));
    }
    let mut text = format!("{open}{}{name_end}", call.name);
    for (key, value) in arguments(call) {
        let value = raw_value::write_between(value, own);
        text.push_str(&format!("\n{key_open}{key}{between}{value}{value_close}"));
    }
    text + "\n" + close
}

fn plamo_3(call: &ParsedCall) -> String {
    format!(
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{}<|plamo:end_tool_name:plamo|>\
         <|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{}<|plamo:end_tool_arguments:plamo|>\
         <|plamo:end_tool_request:plamo|>",
        call.name, call.arguments
    )
}

fn kimi_k3(call: &ParsedCall, index: usize) -> String {
    const CLOSE: &str = "<|close|>argument<|sep|>";
    if arguments(call).any(|(key, _)| !fits_attribute(key)) {
        return format!("<|close|>tools<|sep|>{}<|open|>tools<|sep|>", tagged(&object(call, "arguments").to_string()));
    }
    let mut text = format!("<|open|>call tool=\"{}\" index=\"{index}\"<|sep|>", call.name);
    for (key, value) in arguments(call) {
        let (kind, written) = match value {
            Value::String(text) if !text.contains("<|close|>") => ("string", text.clone()),
            Value::String(_) => ("json", value.to_string().replace('<', "\\u003c")),
            Value::Null => ("null", value.to_string()),
            Value::Bool(_) => ("boolean", value.to_string()),
            Value::Number(_) => ("number", value.to_string()),
            Value::Array(_) => ("array", value.to_string().replace('<', "\\u003c")),
            Value::Object(_) => ("object", value.to_string().replace('<', "\\u003c")),
        };
        text.push_str(&format!("<|open|>argument key=\"{}\" type=\"{kind}\"<|sep|>{written}{CLOSE}", escaped(key)));
    }
    text + "<|close|>call<|sep|>"
}

/// MiniMax M3 writes this before each tag.
const M3: &str = "]<]minimax[>[";

fn minimax_m3(call: &ParsedCall) -> String {
    let open = format!("{M3}<invoke name=\"{}\">", call.name);
    let mut text = open.clone();
    for (key, value) in arguments(call) {
        if !m3_tag(key, value, &mut text) {
            return format!("{open}{}{M3}</invoke>", call.arguments);
        }
    }
    text + M3 + "</invoke>"
}

/// False for a key that cannot be a tag.
fn m3_tag(key: &str, value: &Value, out: &mut String) -> bool {
    let fits = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.len() <= 200 && key.chars().all(is_key_char);
    out.push_str(&format!("{M3}<{key}>"));
    let is_written = match value {
        Value::Object(map) if !map.is_empty() && !map.keys().all(|key| key == "item") => {
            map.iter().all(|(key, value)| m3_tag(key, value, out))
        }
        Value::Array(items) if !items.is_empty() => items.iter().all(|item| m3_tag("item", item, out)),
        other => {
            out.push_str(&raw_value::write_between(other, &[M3]));
            true
        }
    };
    out.push_str(&format!("{M3}</{key}>"));
    fits && is_written
}

fn gemma(call: &ParsedCall, marks: [&str; 2], quote: &str) -> String {
    let mut text = format!("{}call:{}", marks[0], call.name);
    gemma_value(&call.arguments, quote, &mut text);
    text + marks[1]
}

fn gemma_value(value: &Value, quote: &str, out: &mut String) {
    match value {
        Value::String(text) if !STRING_MARKS.iter().any(|mark| text.contains(mark)) => {
            out.push_str(quote);
            out.push_str(text);
            out.push_str(quote);
        }
        Value::Array(items) => list(items.iter(), ['[', ']'], out, |item, out| gemma_value(item, quote, out)),
        Value::Object(map) => list(map.iter(), ['{', '}'], out, |(key, value), out| {
            if !key.is_empty() && key.chars().all(is_key_char) {
                out.push_str(key);
            } else {
                out.push_str(&Value::from(key.as_str()).to_string());
            }
            out.push(':');
            gemma_value(value, quote, out);
        }),
        other => out.push_str(&other.to_string()),
    }
}

fn pythonic(call: &ParsedCall) -> String {
    let none = Map::new();
    let mut text = call.name.clone();
    list(call.arguments.as_object().unwrap_or(&none).iter(), ['(', ')'], &mut text, |(key, value), out| {
        if !key.is_empty() && key.chars().all(is_key_char) {
            out.push_str(key);
        } else {
            out.push_str(&Value::from(key.as_str()).to_string());
        }
        out.push('=');
        python_value(value, out);
    });
    text
}

fn python_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Array(items) => list(items.iter(), ['[', ']'], out, python_value),
        Value::Object(map) => list(map.iter(), ['{', '}'], out, |(key, value), out| {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push_str(": ");
            python_value(value, out);
        }),
    }
}

fn list<T>(items: impl Iterator<Item = T>, brackets: [char; 2], out: &mut String, write: impl Fn(T, &mut String)) {
    out.push(brackets[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push_str(if brackets[0] == '(' { ", " } else { "," });
        }
        write(item, out);
    }
    out.push(brackets[1]);
}

fn qwen_coder(call: &ParsedCall) -> String {
    let none = Map::new();
    let arguments = call.arguments.as_object().unwrap_or(&none);
    // Such a key cannot stand in a tag.
    if arguments.keys().any(|key| key.is_empty() || key.len() > 100 || key.contains(['<', '>', '\n'])) {
        return function(call);
    }
    let mut text = format!("<function={}>\n", call.name);
    for (key, value) in arguments {
        text.push_str(&format!("<parameter={key}>\n{}\n</parameter>\n", raw_value::write(value)));
    }
    text + "</function>"
}
