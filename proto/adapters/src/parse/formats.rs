//! The formats in which open models write calls: one entry each, with its marks and its source.
//!
//! Most formats differ only in their marks; the four shapes behind them are read by [`super::shapes`]. Models mix marks
//! and contents, so every content is read between the marks of every format. A format is its marks, and a name for
//! people.

use super::markers::Mark;

/// The way in which a format writes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallShape {
    /// A JSON object with the name and the arguments, or a list of them.
    Json,
    /// The name, then a JSON object with the arguments.
    NamedJson,
    /// The name, and a tag for each argument.
    Parameters,
    /// `name(key=value)`.
    Pythonic,
    /// A header that names the recipient, then the message.
    Channel,
}

impl CallShape {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::NamedJson => "name and JSON",
            Self::Parameters => "tagged arguments",
            Self::Pythonic => "Python",
            Self::Channel => "channels",
        }
    }
}

/// A format that [`crate::parse::parse`] reads.
#[derive(Debug)]
pub struct CallFormat {
    /// The family of models, in lower case.
    pub family: &'static str,
    pub shape: CallShape,
    /// Where the format is defined: a chat template, or documentation.
    pub source: &'static str,
    /// One call, as the family writes it.
    pub example: &'static str,
    /// The marks that this format adds to those of the formats before it.
    pub(crate) marks: &'static [(&'static str, Mark)],
}

/// All formats that are read.
pub const FORMATS: &[CallFormat] = &[
    CallFormat {
        family: "hermes",
        shape: CallShape::Json,
        source: "https://github.com/NousResearch/Hermes-Function-Calling",
        example: r#"<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>"#,
        marks: &[("<tool_call>", Mark::SectionOpen), ("</tool_call>", Mark::SectionClose)],
    },
    CallFormat {
        family: "qwen",
        shape: CallShape::Json,
        source: "https://huggingface.co/Qwen/Qwen3-8B (chat_template)",
        example: "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        marks: &[],
    },
    CallFormat {
        family: "qwen_coder",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct (chat_template)",
        example: "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        marks: &[
            ("<function=", Mark::ElementOpen(0)),
            ("</function>", Mark::ElementClose),
            ("<parameter=", Mark::ParameterOpen(0)),
            ("</parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: "llama_3",
        shape: CallShape::Json,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
        example: r#"{"name": "f", "parameters": {"a": 1}}"#,
        marks: &[
            ("<|python_tag|>", Mark::PythonOpen),
            ("<|eom_id|>", Mark::End),
            ("<|eot_id|>", Mark::End),
            ("<|end_of_text|>", Mark::End),
        ],
    },
    CallFormat {
        family: "llama_4",
        shape: CallShape::Pythonic,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
        example: "<|python_start|>[f(a=1)]<|python_end|>",
        marks: &[
            ("<|python_start|>", Mark::PythonOpen),
            ("<|python_end|>", Mark::PythonClose),
            ("<|eot|>", Mark::End),
        ],
    },
    CallFormat {
        family: "mistral",
        shape: CallShape::NamedJson,
        source: "https://github.com/mistralai/mistral-common (tokens/tokenizers/instruct.py)",
        example: r#"[TOOL_CALLS]f[ARGS]{"a": 1}"#,
        marks: &[("[TOOL_CALLS]", Mark::ToolCalls), ("</s>", Mark::End)],
    },
    CallFormat {
        family: "deepseek_v3",
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3-0324 (chat_template)",
        example: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        marks: &[
            ("<｜tool▁calls▁begin｜>", Mark::SectionOpen),
            ("<｜tool▁calls▁end｜>", Mark::SectionClose),
            ("<｜tool▁call▁begin｜>", Mark::CallBegin),
            ("<｜tool▁sep｜>", Mark::CallSeparator),
            ("<｜tool▁call▁end｜>", Mark::CallEnd),
            ("<｜end▁of▁sentence｜>", Mark::End),
        ],
    },
    CallFormat {
        family: "deepseek_v3_1",
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.1 (README, chat_template)",
        example: r#"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"#,
        marks: &[],
    },
    CallFormat {
        family: "deepseek_v3_2",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.2 (encoding/encoding_dsv32.py); V4 names the section tool_calls",
        example: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        marks: &[
            ("<｜DSML｜function_calls>", Mark::SectionOpen),
            ("</｜DSML｜function_calls>", Mark::SectionClose),
            ("<｜DSML｜tool_calls>", Mark::SectionOpen),
            ("</｜DSML｜tool_calls>", Mark::SectionClose),
            ("<｜DSML｜invoke ", Mark::ElementOpen(1)),
            ("</｜DSML｜invoke>", Mark::ElementClose),
            ("<｜DSML｜parameter ", Mark::ParameterOpen(1)),
            ("</｜DSML｜parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: "glm",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/zai-org/GLM-4.5 (chat_template); 4.5 to 5",
        example: "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        marks: &[
            ("<arg_key>", Mark::KeyOpen),
            ("</arg_key>", Mark::KeyClose),
            ("<arg_value>", Mark::ValueOpen),
            ("</arg_value>", Mark::ValueClose),
            ("<|user|>", Mark::End),
            ("<|observation|>", Mark::End),
        ],
    },
    CallFormat {
        family: "kimi_k2",
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/moonshotai/Kimi-K2-Instruct (docs/tool_call_guidance.md)",
        example: r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|><|tool_calls_section_end|>"#,
        marks: &[
            ("<|tool_calls_section_begin|>", Mark::SectionOpen),
            ("<|tool_calls_section_end|>", Mark::SectionClose),
            ("<|tool_call_begin|>", Mark::CallBegin),
            ("<|tool_call_argument_begin|>", Mark::CallSeparator),
            ("<|tool_call_end|>", Mark::CallEnd),
        ],
    },
    CallFormat {
        family: "kimi_k3",
        shape: CallShape::Channel,
        source: "https://huggingface.co/moonshotai (chat_template of Kimi K3)",
        example: "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        marks: &[
            ("<|open|>", Mark::HeaderOpen),
            ("<|close|>", Mark::HeaderClose),
            ("<|sep|>", Mark::HeaderEnd),
        ],
    },
    CallFormat {
        family: "minimax_m2",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/MiniMaxAI/MiniMax-M2 (docs/tool_calling_guide.md)",
        example: "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>",
        marks: &[
            ("<minimax:tool_call>", Mark::SectionOpen),
            ("</minimax:tool_call>", Mark::SectionClose),
            ("<invoke ", Mark::ElementOpen(2)),
            ("</invoke>", Mark::ElementClose),
            ("<parameter ", Mark::ParameterOpen(2)),
        ],
    },
    CallFormat {
        family: "gpt_oss",
        shape: CallShape::Channel,
        source: "https://cookbook.openai.com/articles/openai-harmony",
        example: "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
        marks: &[
            ("<|start|>", Mark::MessageStart),
            ("<|channel|>", Mark::MessageStart),
            ("<|constrain|>", Mark::MessagePart),
            ("<|message|>", Mark::MessageBody),
            ("<|call|>", Mark::MessageEnd),
            ("<|end|>", Mark::MessageEnd),
            ("<|return|>", Mark::MessageEnd),
        ],
    },
    CallFormat {
        family: "gemma_4",
        shape: CallShape::NamedJson,
        source: "https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4",
        example: "<|tool_call>call:f{a:1}<tool_call|>",
        marks: &[
            ("<|tool_call>", Mark::SectionOpen),
            ("<tool_call|>", Mark::SectionClose),
            ("<turn|>", Mark::End),
            ("<|tool_response>", Mark::End),
        ],
    },
    CallFormat {
        family: "function_gemma",
        shape: CallShape::NamedJson,
        source: "https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
        example: "<start_function_call>call:f{a:1}<end_function_call>",
        marks: &[
            ("<start_function_call>", Mark::SectionOpen),
            ("<end_function_call>", Mark::SectionClose),
            ("<start_function_response>", Mark::End),
        ],
    },
    CallFormat {
        family: "gemma_3",
        shape: CallShape::Pythonic,
        source: "https://ai.google.dev/gemma/docs/capabilities/function-calling",
        example: "[f(a=1)]",
        marks: &[("<end_of_turn>", Mark::End)],
    },
    CallFormat {
        family: "lfm2",
        shape: CallShape::Pythonic,
        source: "https://huggingface.co/LiquidAI/LFM2-1.2B (README)",
        example: "<|tool_call_start|>[f(a=1)]<|tool_call_end|>",
        marks: &[
            ("<|tool_call_start|>", Mark::SectionOpen),
            // Kimi K2 ends each call with this mark, LFM2 the section.
            ("<|im_end|>", Mark::End),
        ],
    },
    CallFormat {
        family: "cohere_command",
        shape: CallShape::Json,
        source: "https://docs.cohere.com/docs/command-a-hf (tool use)",
        example: r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}]<|END_ACTION|>"#,
        marks: &[
            ("<|START_ACTION|>", Mark::SectionOpen),
            ("<|END_ACTION|>", Mark::SectionClose),
            ("<|START_RESPONSE|>", Mark::Wrapper),
            ("<|END_RESPONSE|>", Mark::Wrapper),
            ("<|START_TEXT|>", Mark::Wrapper),
            ("<|END_TEXT|>", Mark::Wrapper),
            ("<|END_OF_TURN_TOKEN|>", Mark::End),
        ],
    },
    CallFormat {
        family: "hunyuan",
        shape: CallShape::Json,
        source: "https://huggingface.co/tencent/Hunyuan-A13B-Instruct (chat_template)",
        example: r#"<tool_calls>[{"name": "f", "arguments": {"a": 1}}]</tool_calls>"#,
        marks: &[
            ("<tool_calls>", Mark::SectionOpen),
            ("</tool_calls>", Mark::SectionClose),
            ("<|eos|>", Mark::End),
        ],
    },
    CallFormat {
        family: "jamba",
        shape: CallShape::Json,
        source: "https://huggingface.co/ai21labs/AI21-Jamba-Mini-1.5 (README)",
        example: "<tool_calls>[\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n]</tool_calls>",
        marks: &[],
    },
    CallFormat {
        family: "minimax_m1",
        shape: CallShape::Json,
        source: "https://huggingface.co/MiniMaxAI/MiniMax-M1-80k (docs/function_call_guide.md)",
        example: "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_calls>",
        marks: &[],
    },
    CallFormat {
        family: "seed_oss",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct (chat_template)",
        example: "<seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</seed:tool_call>",
        marks: &[
            ("<seed:tool_call>", Mark::SectionOpen),
            ("</seed:tool_call>", Mark::SectionClose),
            ("<seed:eos>", Mark::End),
        ],
    },
    CallFormat {
        family: "step_3",
        shape: CallShape::Parameters,
        source: "https://huggingface.co/stepfun-ai/step3 (chat_template)",
        example: "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"f\"><steptml:parameter name=\"a\">1</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        marks: &[
            ("<｜tool_calls_begin｜>", Mark::SectionOpen),
            ("<｜tool_calls_end｜>", Mark::SectionClose),
            ("<｜tool_call_begin｜>", Mark::CallBegin),
            ("<｜tool_sep｜>", Mark::CallSeparator),
            ("<｜tool_call_end｜>", Mark::CallEnd),
            ("<steptml:invoke ", Mark::ElementOpen(5)),
            ("</steptml:invoke>", Mark::ElementClose),
            ("<steptml:parameter ", Mark::ParameterOpen(5)),
            ("</steptml:parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: "ernie_4_5",
        shape: CallShape::Json,
        source: "https://huggingface.co/baidu/ERNIE-4.5-21B-A3B-Thinking (chat_template)",
        example: "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        marks: &[("<|end_of_sentence|>", Mark::End)],
    },
    CallFormat {
        family: "longcat",
        shape: CallShape::Json,
        source: "https://huggingface.co/meituan-longcat/LongCat-Flash-Chat (README)",
        example: "<longcat_tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</longcat_tool_call>",
        marks: &[
            ("<longcat_tool_call>", Mark::SectionOpen),
            ("</longcat_tool_call>", Mark::SectionClose),
            ("</longcat_s>", Mark::End),
        ],
    },
    CallFormat {
        family: "phi_4",
        shape: CallShape::Json,
        source: "https://huggingface.co/microsoft/Phi-4-mini-instruct (README)",
        example: r#"<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]<|/tool_call|>"#,
        marks: &[("<|tool_call|>", Mark::SectionOpen), ("<|/tool_call|>", Mark::SectionClose)],
    },
    CallFormat {
        family: "phi_4_mini",
        shape: CallShape::Json,
        source: "https://github.com/microsoft/PhiCookBook (function calling with Phi-4-mini)",
        example: r#"functools[{"name": "f", "arguments": {"a": 1}}]"#,
        marks: &[],
    },
    CallFormat {
        family: "internlm",
        shape: CallShape::Json,
        source: "https://github.com/InternLM/InternLM (chat/chat_format.md)",
        example: r#"<|action_start|><|plugin|>{"name": "f", "parameters": {"a": 1}}<|action_end|>"#,
        marks: &[
            ("<|action_start|>", Mark::SectionOpen),
            ("<|plugin|>", Mark::Wrapper),
            ("<|action_end|>", Mark::SectionClose),
        ],
    },
    CallFormat {
        family: "xlam",
        shape: CallShape::Json,
        source: "https://huggingface.co/Salesforce/Llama-xLAM-2-8b-fc-r (chat_template)",
        example: r#"[{"name": "f", "arguments": {"a": 1}}]"#,
        marks: &[],
    },
    CallFormat {
        family: "olmo_3",
        shape: CallShape::Pythonic,
        source: "https://huggingface.co/allenai/Olmo-3-7B-Instruct (chat_template)",
        example: "<function_calls>\nf(a=1)\n</function_calls>",
        marks: &[
            ("<function_calls>", Mark::SectionOpen),
            ("</function_calls>", Mark::SectionClose),
            ("<|endoftext|>", Mark::End),
        ],
    },
    CallFormat {
        family: "apertus",
        shape: CallShape::Json,
        source: "https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509 (chat_template)",
        example: r#"<|tools_prefix|>[{"f": {"a": 1}}]<|tools_suffix|>"#,
        marks: &[
            ("<|tools_prefix|>", Mark::KeyedSectionOpen),
            ("<|tools_suffix|>", Mark::SectionClose),
            ("<|assistant_end|>", Mark::End),
        ],
    },
    CallFormat {
        family: "gigachat",
        shape: CallShape::Json,
        source: "https://huggingface.co/ai-sage/GigaChat3-10B-A1.8B (chat_template)",
        example: "function call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
        marks: &[
            ("<|function_call|>", Mark::SectionOpen),
            ("<|role_sep|>", Mark::Wrapper),
            ("<|message_sep|>", Mark::End),
        ],
    },
    CallFormat {
        family: "minicpm",
        shape: CallShape::Parameters,
        source: "https://github.com/OpenBMB/MiniCPM (MiniCPM4 and MiniCPM5, tool calling)",
        example: r#"<function name="f"><param name="a">1</param></function>"#,
        marks: &[
            ("<function ", Mark::ElementOpen(3)),
            ("<param ", Mark::ParameterOpen(3)),
            ("</param>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: "granite",
        shape: CallShape::Json,
        source: "https://www.ibm.com/granite/docs/models/granite (function calling); 3 and 4 use marks of Phi and Hermes",
        example: r#"<function_call> {"name": "f", "arguments": {"a": 1}}"#,
        marks: &[("<function_call>", Mark::SectionOpen), ("</function_call>", Mark::SectionClose)],
    },
    CallFormat {
        family: "nemotron",
        shape: CallShape::Json,
        source: "https://huggingface.co/nvidia/NVIDIA-Nemotron-Nano-9B-v2 (README)",
        example: r#"<TOOLCALL>[{"name": "f", "arguments": {"a": 1}}]</TOOLCALL>"#,
        marks: &[
            ("<TOOLCALL>", Mark::SectionOpen),
            ("</TOOLCALL>", Mark::SectionClose),
            ("<SPECIAL_12>", Mark::End),
        ],
    },
    CallFormat {
        family: "anthropic",
        shape: CallShape::Parameters,
        source: "https://docs.anthropic.com/en/docs/legacy-tool-use",
        example: "<function_calls>\n<invoke name=\"f\">\n<parameter name=\"a\">1</parameter>\n</invoke>\n</function_calls>",
        marks: &[
            ("<antml:function_calls>", Mark::SectionOpen),
            ("</antml:function_calls>", Mark::SectionClose),
            ("<antml:invoke ", Mark::ElementOpen(4)),
            ("</antml:invoke>", Mark::ElementClose),
            ("<antml:parameter ", Mark::ParameterOpen(4)),
            ("</antml:parameter>", Mark::ParameterClose),
        ],
    },
];
