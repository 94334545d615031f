//! The families of models, by the way in which they write calls: one entry each, with its marks and its source.
//!
//! Most formats differ only in their marks; few shapes are behind them, which [`crate::parse`] reads. Models mix marks
//! and contents, so every content is read between the marks of every family.

use std::fmt;

use crate::mark::Mark;
use crate::tag_style::TagStyle;

/// A way of writing calls in text. [`crate::prompt`] teaches and renders each; [`crate::parse`] reads all of them, in
/// any mix, without knowing which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    #[default]
    Tags,
    Hermes,
    Qwen,
    QwenCoder,
    Function,
    Llama,
    Llama3,
    Llama4,
    Mistral,
    MistralArgs,
    DeepseekV3,
    DeepseekV31,
    DeepseekV32,
    Glm,
    KimiK2,
    KimiK3,
    MinimaxM2,
    MinimaxM3,
    GptOss,
    Gemma,
    FunctionGemma,
    Pythonic,
    Lfm2,
    CohereCommand,
    Hunyuan,
    Jamba,
    MinimaxM1,
    SeedOss,
    Step3,
    Ernie45,
    Longcat,
    Phi4,
    Phi4Mini,
    Internlm,
    Xlam,
    Olmo3,
    Apertus,
    Gigachat,
    Minicpm,
    Granite,
    Nemotron,
    Anthropic,
    HunyuanV3,
    K2Horizon,
    SolarOpen,
    Plamo3,
    Inkling,
    Muse,
    Dots,
    Pangu,
    HyperclovaX,
}

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

/// The format of a family.
#[derive(Debug)]
pub struct CallFormat {
    pub family: Family,
    pub shape: CallShape,
    /// Where the format is defined: documentation, or a chat template.
    pub source: &'static str,
    /// The marks that this format adds to those of the formats before it.
    pub(crate) marks: &'static [(&'static str, Mark)],
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no prompt format {0:?}; there are {list}", list = Family::names())]
pub struct UnknownFamily(String);

impl Family {
    /// All families, in the order of [`FORMATS`].
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|format| format.family)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tags => "tags",
            Self::Hermes => "hermes",
            Self::Qwen => "qwen",
            Self::QwenCoder => "qwen_coder",
            Self::Function => "function",
            Self::Llama => "llama",
            Self::Llama3 => "llama_3",
            Self::Llama4 => "llama_4",
            Self::Mistral => "mistral",
            Self::MistralArgs => "mistral_args",
            Self::DeepseekV3 => "deepseek_v3",
            Self::DeepseekV31 => "deepseek_v3_1",
            Self::DeepseekV32 => "deepseek_v3_2",
            Self::Glm => "glm",
            Self::KimiK2 => "kimi_k2",
            Self::KimiK3 => "kimi_k3",
            Self::MinimaxM2 => "minimax_m2",
            Self::MinimaxM3 => "minimax_m3",
            Self::GptOss => "gpt_oss",
            Self::Gemma => "gemma",
            Self::FunctionGemma => "function_gemma",
            Self::Pythonic => "pythonic",
            Self::Lfm2 => "lfm2",
            Self::CohereCommand => "cohere_command",
            Self::Hunyuan => "hunyuan",
            Self::Jamba => "jamba",
            Self::MinimaxM1 => "minimax_m1",
            Self::SeedOss => "seed_oss",
            Self::Step3 => "step_3",
            Self::Ernie45 => "ernie_4_5",
            Self::Longcat => "longcat",
            Self::Phi4 => "phi_4",
            Self::Phi4Mini => "phi_4_mini",
            Self::Internlm => "internlm",
            Self::Xlam => "xlam",
            Self::Olmo3 => "olmo_3",
            Self::Apertus => "apertus",
            Self::Gigachat => "gigachat",
            Self::Minicpm => "minicpm",
            Self::Granite => "granite",
            Self::Nemotron => "nemotron",
            Self::Anthropic => "anthropic",
            Self::HunyuanV3 => "hunyuan_v3",
            Self::K2Horizon => "k2_horizon",
            Self::SolarOpen => "solar_open",
            Self::Plamo3 => "plamo_3",
            Self::Inkling => "inkling",
            Self::Muse => "muse",
            Self::Dots => "dots",
            Self::Pangu => "pangu",
            Self::HyperclovaX => "hyperclova_x",
        }
    }

    /// Also takes `function_tag` for [`Family::Function`].
    ///
    /// # Errors
    ///
    /// An unknown name; the error lists the names there are.
    pub fn parse(text: &str) -> Result<Self, UnknownFamily> {
        let name = if text == "function_tag" { "function" } else { text };
        let shown = || UnknownFamily(text.chars().take(80).collect());
        Self::all().find(|family| family.as_str() == name).ok_or_else(shown)
    }

    fn names() -> String {
        Self::all().map(Self::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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

/// All formats that are read.
pub const FORMATS: &[CallFormat] = &[
    CallFormat {
        family: Family::Tags,
        shape: CallShape::Json,
        source: "the default prompt of this crate, as hugind has it",
        marks: &[],
    },
    CallFormat {
        family: Family::Hermes,
        shape: CallShape::Json,
        source: "https://github.com/NousResearch/Hermes-Function-Calling",
        marks: &[("<tool_call>", Mark::SectionOpen), ("</tool_call>", Mark::SectionClose)],
    },
    CallFormat {
        family: Family::Qwen,
        shape: CallShape::Json,
        source: "https://huggingface.co/Qwen/Qwen3-8B (chat_template)",
        marks: &[],
    },
    CallFormat {
        family: Family::QwenCoder,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct (chat_template); also MiMo, Step 3.5, iQuest-Coder",
        marks: &[
            ("<function=", Mark::ElementOpen(TagStyle::Equals)),
            ("</function>", Mark::ElementClose),
            ("<parameter=", Mark::ParameterOpen(TagStyle::Equals)),
            ("</parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: Family::Function,
        shape: CallShape::Parameters,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/ (user-defined custom tool calling)",
        marks: &[],
    },
    CallFormat {
        family: Family::Llama,
        shape: CallShape::Json,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/",
        marks: &[("<|python_tag|>", Mark::PythonOpen)],
    },
    CallFormat {
        family: Family::Llama3,
        shape: CallShape::Json,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_2/",
        marks: &[("<|eom_id|>", Mark::End), ("<|eot_id|>", Mark::End), ("<|end_of_text|>", Mark::End)],
    },
    CallFormat {
        family: Family::Llama4,
        shape: CallShape::Pythonic,
        source: "https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/",
        marks: &[("<|python_start|>", Mark::PythonOpen), ("<|python_end|>", Mark::PythonClose), ("<|eot|>", Mark::End)],
    },
    CallFormat {
        family: Family::Mistral,
        shape: CallShape::Json,
        source: "https://github.com/mistralai/mistral-common (tokens/tokenizers/instruct.py, versions 3 and 7)",
        marks: &[("[TOOL_CALLS]", Mark::ToolCalls), ("</s>", Mark::End)],
    },
    CallFormat {
        family: Family::MistralArgs,
        shape: CallShape::NamedJson,
        source: "https://github.com/mistralai/mistral-common (tokens/tokenizers/instruct.py, versions 11 and 13)",
        marks: &[],
    },
    CallFormat {
        family: Family::DeepseekV3,
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3-0324 (chat_template)",
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
        family: Family::DeepseekV31,
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.1 (README, chat_template)",
        marks: &[],
    },
    CallFormat {
        family: Family::DeepseekV32,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/deepseek-ai/DeepSeek-V3.2 (encoding/encoding_dsv32.py); V4 names the section tool_calls",
        marks: &[
            ("<｜DSML｜function_calls>", Mark::SectionOpen),
            ("</｜DSML｜function_calls>", Mark::SectionClose),
            ("<｜DSML｜tool_calls>", Mark::SectionOpen),
            ("</｜DSML｜tool_calls>", Mark::SectionClose),
            ("<｜DSML｜invoke ", Mark::ElementOpen(TagStyle::Dsml)),
            ("</｜DSML｜invoke>", Mark::ElementClose),
            ("<｜DSML｜parameter ", Mark::ParameterOpen(TagStyle::Dsml)),
            ("</｜DSML｜parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: Family::Glm,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/zai-org/GLM-4.5 (chat_template); 4.5 to 5, also Laguna, Ling 3, HyperCLOVA X Think 32B",
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
        family: Family::KimiK2,
        shape: CallShape::NamedJson,
        source: "https://huggingface.co/moonshotai/Kimi-K2-Instruct (docs/tool_call_guidance.md)",
        marks: &[
            ("<|tool_calls_section_begin|>", Mark::SectionOpen),
            ("<|tool_calls_section_end|>", Mark::SectionClose),
            ("<|tool_call_begin|>", Mark::CallBegin),
            ("<|tool_call_argument_begin|>", Mark::CallSeparator),
            ("<|tool_call_end|>", Mark::CallEnd),
        ],
    },
    CallFormat {
        family: Family::KimiK3,
        shape: CallShape::Channel,
        source: "https://huggingface.co/moonshotai (chat_template of Kimi K3)",
        marks: &[("<|open|>", Mark::HeaderOpen), ("<|close|>", Mark::HeaderClose), ("<|sep|>", Mark::HeaderEnd)],
    },
    CallFormat {
        family: Family::MinimaxM2,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/MiniMaxAI/MiniMax-M2 (docs/tool_calling_guide.md)",
        marks: &[
            ("<minimax:tool_call>", Mark::SectionOpen),
            ("</minimax:tool_call>", Mark::SectionClose),
            ("<invoke ", Mark::ElementOpen(TagStyle::Invoke)),
            ("</invoke>", Mark::ElementClose),
            ("<parameter ", Mark::ParameterOpen(TagStyle::Invoke)),
        ],
    },
    CallFormat {
        family: Family::MinimaxM3,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/MiniMaxAI (chat_template of MiniMax M3)",
        marks: &[("]<]minimax[>[", Mark::Namespace)],
    },
    CallFormat {
        family: Family::GptOss,
        shape: CallShape::Channel,
        source: "https://cookbook.openai.com/articles/openai-harmony",
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
        family: Family::Gemma,
        shape: CallShape::NamedJson,
        source: "https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4",
        marks: &[
            ("<|tool_call>", Mark::SectionOpen),
            ("<tool_call|>", Mark::SectionClose),
            ("<turn|>", Mark::End),
            ("<|tool_response>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::FunctionGemma,
        shape: CallShape::NamedJson,
        source: "https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
        marks: &[
            ("<start_function_call>", Mark::SectionOpen),
            ("<end_function_call>", Mark::SectionClose),
            ("<start_function_response>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Pythonic,
        shape: CallShape::Pythonic,
        source: "https://ai.google.dev/gemma/docs/capabilities/function-calling",
        marks: &[("<end_of_turn>", Mark::End)],
    },
    CallFormat {
        family: Family::Lfm2,
        shape: CallShape::Pythonic,
        source: "https://huggingface.co/LiquidAI/LFM2-1.2B (README)",
        marks: &[
            ("<|tool_call_start|>", Mark::SectionOpen),
            // Kimi K2 ends each call with this mark, LFM2 the section.
            ("<|im_end|>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::CohereCommand,
        shape: CallShape::Json,
        source: "https://docs.cohere.com/docs/command-a-hf (tool use)",
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
        family: Family::Hunyuan,
        shape: CallShape::Json,
        source: "https://huggingface.co/tencent/Hunyuan-A13B-Instruct (chat_template)",
        marks: &[("<tool_calls>", Mark::SectionOpen), ("</tool_calls>", Mark::SectionClose), ("<|eos|>", Mark::End)],
    },
    CallFormat {
        family: Family::Jamba,
        shape: CallShape::Json,
        source: "https://huggingface.co/ai21labs/AI21-Jamba-Mini-1.5 (README)",
        marks: &[],
    },
    CallFormat {
        family: Family::MinimaxM1,
        shape: CallShape::Json,
        source: "https://huggingface.co/MiniMaxAI/MiniMax-M1-80k (docs/function_call_guide.md)",
        marks: &[],
    },
    CallFormat {
        family: Family::SeedOss,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/ByteDance-Seed/Seed-OSS-36B-Instruct (chat_template)",
        marks: &[
            ("<seed:tool_call>", Mark::SectionOpen),
            ("</seed:tool_call>", Mark::SectionClose),
            ("<seed:eos>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Step3,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/stepfun-ai/step3 (chat_template)",
        marks: &[
            ("<｜tool_calls_begin｜>", Mark::SectionOpen),
            ("<｜tool_calls_end｜>", Mark::SectionClose),
            ("<｜tool_call_begin｜>", Mark::CallBegin),
            ("<｜tool_sep｜>", Mark::CallSeparator),
            ("<｜tool_call_end｜>", Mark::CallEnd),
            ("<steptml:invoke ", Mark::ElementOpen(TagStyle::Step)),
            ("</steptml:invoke>", Mark::ElementClose),
            ("<steptml:parameter ", Mark::ParameterOpen(TagStyle::Step)),
            ("</steptml:parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: Family::Ernie45,
        shape: CallShape::Json,
        source: "https://huggingface.co/baidu/ERNIE-4.5-21B-A3B-Thinking (chat_template)",
        marks: &[("<|end_of_sentence|>", Mark::End)],
    },
    CallFormat {
        family: Family::Longcat,
        shape: CallShape::Json,
        source: "https://huggingface.co/meituan-longcat/LongCat-Flash-Chat (README)",
        marks: &[
            ("<longcat_tool_call>", Mark::SectionOpen),
            ("</longcat_tool_call>", Mark::SectionClose),
            ("</longcat_s>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Phi4,
        shape: CallShape::Json,
        source: "https://huggingface.co/microsoft/Phi-4-mini-instruct (README)",
        marks: &[("<|tool_call|>", Mark::CallOpen), ("<|/tool_call|>", Mark::SectionClose)],
    },
    CallFormat {
        family: Family::Phi4Mini,
        shape: CallShape::Json,
        source: "https://github.com/microsoft/PhiCookBook (function calling with Phi-4-mini)",
        marks: &[],
    },
    CallFormat {
        family: Family::Internlm,
        shape: CallShape::Json,
        source: "https://github.com/InternLM/InternLM (chat/chat_format.md)",
        marks: &[
            ("<|action_start|>", Mark::SectionOpen),
            ("<|plugin|>", Mark::Wrapper),
            ("<|action_end|>", Mark::SectionClose),
        ],
    },
    CallFormat {
        family: Family::Xlam,
        shape: CallShape::Json,
        source: "https://huggingface.co/Salesforce/Llama-xLAM-2-8b-fc-r (chat_template)",
        marks: &[],
    },
    CallFormat {
        family: Family::Olmo3,
        shape: CallShape::Pythonic,
        source: "https://huggingface.co/allenai/Olmo-3-7B-Instruct (chat_template)",
        marks: &[
            ("<function_calls>", Mark::SectionOpen),
            ("</function_calls>", Mark::SectionClose),
            ("<|endoftext|>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Apertus,
        shape: CallShape::Json,
        source: "https://huggingface.co/swiss-ai/Apertus-8B-Instruct-2509 (chat_template)",
        marks: &[
            ("<|tools_prefix|>", Mark::KeyedSectionOpen),
            ("<|tools_suffix|>", Mark::SectionClose),
            ("<|assistant_end|>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Gigachat,
        shape: CallShape::Json,
        source: "https://huggingface.co/ai-sage/GigaChat3-10B-A1.8B (chat_template)",
        marks: &[
            ("<|function_call|>", Mark::CallOpen),
            ("<|role_sep|>", Mark::Wrapper),
            ("<|message_sep|>", Mark::MessageSeparator),
        ],
    },
    CallFormat {
        family: Family::Minicpm,
        shape: CallShape::Parameters,
        source: "https://github.com/OpenBMB/MiniCPM (MiniCPM4 and MiniCPM5, tool calling)",
        marks: &[
            ("<function ", Mark::ElementOpen(TagStyle::Function)),
            ("<param ", Mark::ParameterOpen(TagStyle::Function)),
            ("</param>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: Family::Granite,
        shape: CallShape::Json,
        source: "https://www.ibm.com/granite/docs/models/granite (function calling); 3 and 4 use marks of Phi and Hermes",
        marks: &[("<function_call>", Mark::CallOpen), ("</function_call>", Mark::SectionClose)],
    },
    CallFormat {
        family: Family::Nemotron,
        shape: CallShape::Json,
        source: "https://huggingface.co/nvidia/NVIDIA-Nemotron-Nano-9B-v2 (README)",
        marks: &[("<TOOLCALL>", Mark::SectionOpen), ("</TOOLCALL>", Mark::SectionClose), ("<SPECIAL_12>", Mark::End)],
    },
    CallFormat {
        family: Family::Anthropic,
        shape: CallShape::Parameters,
        source: "https://docs.anthropic.com/en/docs/legacy-tool-use",
        marks: &[
            ("<antml:function_calls>", Mark::SectionOpen),
            ("</antml:function_calls>", Mark::SectionClose),
            ("<antml:invoke ", Mark::ElementOpen(TagStyle::NamespacedInvoke)),
            ("</antml:invoke>", Mark::ElementClose),
            ("<antml:parameter ", Mark::ParameterOpen(TagStyle::NamespacedInvoke)),
            ("</antml:parameter>", Mark::ParameterClose),
        ],
    },
    CallFormat {
        family: Family::HunyuanV3,
        shape: CallShape::Parameters,
        source: "https://github.com/vllm-project/vllm (vllm/tool_parsers/hy_v3_tool_parser.py, hy_v4_tool_parser.py)",
        marks: &[
            ("<tool_sep>", Mark::NameEnd),
            ("<tool_calls:opensource>", Mark::SectionOpen),
            ("</tool_calls:opensource>", Mark::SectionClose),
            ("<tool_call:opensource>", Mark::SectionOpen),
            ("</tool_call:opensource>", Mark::SectionClose),
            ("<tool_sep:opensource>", Mark::NameEnd),
            ("<arg_key:opensource>", Mark::KeyOpen),
            ("</arg_key:opensource>", Mark::KeyClose),
            ("<arg_value:opensource>", Mark::ValueOpen),
            ("</arg_value:opensource>", Mark::ValueClose),
        ],
    },
    CallFormat {
        family: Family::K2Horizon,
        shape: CallShape::Parameters,
        source: "https://github.com/vllm-project/vllm (vllm/tool_parsers/k2_horizon_tool_parser.py)",
        marks: &[
            ("<ifm|tool_calls>", Mark::SectionOpen),
            ("</ifm|tool_calls>", Mark::SectionClose),
            ("<ifm|tool_call>", Mark::SectionOpen),
            ("</ifm|tool_call>", Mark::SectionClose),
            ("<ifm|arg_key>", Mark::KeyOpen),
            ("</ifm|arg_key>", Mark::KeyClose),
            ("<ifm|arg_type>", Mark::TypeOpen),
            ("</ifm|arg_type>", Mark::TypeClose),
            ("<ifm|arg_value>", Mark::ValueOpen),
            ("</ifm|arg_value>", Mark::ValueClose),
        ],
    },
    CallFormat {
        family: Family::SolarOpen,
        shape: CallShape::Parameters,
        source: "https://huggingface.co/upstage (chat_template of Solar Open 2)",
        marks: &[
            ("<|tool_call:start|>", Mark::SectionOpen),
            ("<|tool_call:end|>", Mark::SectionClose),
            ("<|tool_arg:start|>", Mark::KeyOpen),
            ("<|tool_arg:value|>", Mark::KeyValueSeparator),
            ("<|tool_arg:end|>", Mark::ValueClose),
        ],
    },
    CallFormat {
        family: Family::Plamo3,
        shape: CallShape::NamedJson,
        source: "https://github.com/vllm-project/vllm (vllm/parser/plamo3.py)",
        marks: &[
            ("<|plamo:begin_tool_requests:plamo|>", Mark::SectionOpen),
            ("<|plamo:end_tool_requests:plamo|>", Mark::SectionClose),
            ("<|plamo:begin_tool_request:plamo|>", Mark::SectionOpen),
            ("<|plamo:end_tool_request:plamo|>", Mark::SectionClose),
            ("<|plamo:begin_tool_name:plamo|>", Mark::CallBegin),
            ("<|plamo:end_tool_name:plamo|>", Mark::CallSeparator),
            ("<|plamo:begin_tool_arguments:plamo|>", Mark::Wrapper),
            ("<|plamo:constrain|>", Mark::MessagePart),
            ("<|plamo:msg|>", Mark::MessageBody),
            ("<|plamo:end_tool_arguments:plamo|>", Mark::CallEnd),
            ("<|plamo:tag|>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Inkling,
        shape: CallShape::Channel,
        source: "https://github.com/vllm-project/vllm (vllm/parser/inkling.py)",
        marks: &[
            ("<|message_model|>", Mark::MessageStart),
            ("<|content_text|>", Mark::MessageBody),
            ("<|content_thinking|>", Mark::MessageBody),
            ("<|content_invoke_tool_json|>", Mark::MessageCall),
            ("<|end_message|>", Mark::MessageEnd),
            ("<|content_model_end_sampling|>", Mark::End),
        ],
    },
    CallFormat {
        family: Family::Muse,
        shape: CallShape::Channel,
        source: "https://github.com/vllm-project/vllm (vllm/tool_parsers/muse_tool_parser.py)",
        marks: &[
            ("<atem:function_calls>", Mark::MessageSection),
            ("</atem:function_calls>", Mark::SectionClose),
            ("<atem:invoke ", Mark::ElementOpen(TagStyle::Atem)),
            ("</atem:invoke>", Mark::ElementClose),
            ("<atem:parameter ", Mark::ParameterOpen(TagStyle::Atem)),
            ("</atem:parameter>", Mark::ParameterClose),
            ("<|eom|>", Mark::MessageEnd),
        ],
    },
    CallFormat {
        family: Family::Dots,
        shape: CallShape::Parameters,
        source: "https://github.com/vllm-project/vllm (vllm/tool_parsers/dots_tool_parser.py)",
        marks: &[("<dots_function_call>", Mark::SectionOpen), ("</dots_function_call>", Mark::SectionClose)],
    },
    CallFormat {
        family: Family::Pangu,
        shape: CallShape::Json,
        source: "https://ai.gitcode.com/ascend-tribe (chat_template of openPangu)",
        marks: &[],
    },
    CallFormat {
        family: Family::HyperclovaX,
        shape: CallShape::Json,
        source: "https://huggingface.co/naver-hyperclovax/HyperCLOVAX-SEED-Think-14B (chat_template)",
        marks: &[],
    },
];
