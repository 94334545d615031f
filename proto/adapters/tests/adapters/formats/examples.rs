//! Texts from public examples of the families, with their calls.

/// The family, the text, and the calls as JSON.
pub(crate) const EXAMPLES: &[(&str, &str, &str)] = &[
    ("hermes", "<tool_call>\n{\"arguments\": {\"city\": \"Paris\"}, \"name\": \"get_weather\"}\n</tool_call>", PARIS),
    ("hermes", "<tool_call>\n{'arguments': {'city': 'Paris'}, 'name': 'get_weather'}\n</tool_call>\n", PARIS),
    ("llama_3", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}<|eot_id|>", PARIS),
    (
        "llama_3",
        "{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}<|eom_id|>",
        PARIS,
    ),
    ("llama_3", "```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n```", PARIS),
    (
        "llama_3",
        "\n{\"name\": \"now\", \"parameters\": {}};{\"name\": \"now\", \"parameters\": {}}",
        "[{\"name\":\"now\",\"arguments\":{}},{\"name\":\"now\",\"arguments\":{}}]",
    ),
    ("llama", "<|python_tag|>get_weather.call(city=\"Paris\")<|eom_id|>", PARIS),
    ("llama_4", "<|python_start|>[get_weather(city='Paris')]<|python_end|><|eot|>", PARIS),
    ("pythonic", "[get_weather(city='Paris')]", PARIS),
    ("pythonic", "```tool_code\n[get_weather(city=\"Paris\")]\n```", PARIS),
    ("pythonic", "```tool_code\nget_weather(city='Paris')\n```", PARIS),
    ("pythonic", "```tool_code\nprint(get_weather(city='Paris'))\n```", PARIS),
    (
        "pythonic",
        "```tool_code\nprint(now())\nnow()\n```",
        "[{\"name\":\"now\",\"arguments\":{}},{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "mistral",
        "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}, \"id\": \"D681PevKs\"}]</s>",
        PARIS,
    ),
    ("mistral_args", "[TOOL_CALLS]get_weather[CALL_ID]bbc5b7ede[ARGS]{\"city\": \"Paris\"}</s>", PARIS),
    ("mistral_args", "[TOOL_CALLS]get_weather{\"city\": \"Paris\"}</s>", PARIS),
    (
        "deepseek_v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        PARIS,
    ),
    (
        "deepseek_v3_1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        PARIS,
    ),
    ("deepseek_v3_1", "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜>", PARIS),
    (
        "deepseek_v3_2",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls><｜end▁of▁sentence｜>",
        PARIS,
    ),
    (
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call><|observation|>",
        PARIS,
    ),
    ("glm", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>", PARIS),
    ("glm", "<tool_call>now</tool_call>", "[{\"name\":\"now\",\"arguments\":{}}]"),
    (
        "glm",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        "[{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Oslo\",\"days\":3}}]",
    ),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\": \"Paris\"}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
        PARIS,
    ),
    (
        "kimi_k2",
        "<|tool_call_begin|>functions.get_weather:12<|tool_call_argument_begin|> {\"city\": \"Paris\"} <|tool_call_end|>",
        PARIS,
    ),
    (
        "kimi_k3",
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>\n  <|open|>call tool=\"get_weather\" index=\"1\"<|sep|>\n    <|open|>argument key=\"city\" type=\"string\"<|sep|>Paris<|close|>argument<|sep|>\n  <|close|>call<|sep|>\n<|close|>tools<|sep|><|close|>message<|sep|>",
        PARIS,
    ),
    (
        "minimax_m2",
        "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        PARIS,
    ),
    (
        "minimax_m2",
        "<minimax:tool_call><invoke name=\"now\"></invoke></minimax:tool_call>",
        "[{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "minimax_m3",
        "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        PARIS,
    ),
    (
        "gpt_oss",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Paris\"}<|call|>",
        PARIS,
    ),
    (
        "gpt_oss",
        "<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{\"city\":\"Paris\"}<|call|>",
        PARIS,
    ),
    (
        "gpt_oss",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{\"city\":\"Paris\"}<|call|>",
        PARIS,
    ),
    ("gemma", "<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|><|tool_response>", PARIS),
    ("gemma", "<|tool_call>call: get_weather{city:<|\"|>Paris<|\"|>}<tool_call|><turn|>", PARIS),
    (
        "function_gemma",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call><start_function_response>",
        PARIS,
    ),
    ("lfm2", "<|tool_call_start|>[get_weather(city=\"Paris\")]<|tool_call_end|><|im_end|>", PARIS),
    (
        "cohere_command",
        "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>",
        PARIS,
    ),
    (
        "hunyuan",
        "<tool_calls>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]</tool_calls><|eos|>",
        PARIS,
    ),
    (
        "seed_oss",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call><seed:eos>",
        PARIS,
    ),
    (
        "step_3",
        "<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name=\"get_weather\"><steptml:parameter name=\"city\">Paris</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        PARIS,
    ),
    (
        "longcat",
        "<longcat_tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</longcat_tool_call></longcat_s>",
        PARIS,
    ),
    (
        "phi_4",
        "<|tool_call|>[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}}]<|/tool_call|><|end|>",
        PARIS,
    ),
    ("phi_4_mini", "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]<|end|>", PARIS),
    (
        "internlm",
        "<|action_start|><|plugin|>\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}<|action_end|><|im_end|>",
        PARIS,
    ),
    ("xlam", "[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]", PARIS),
    ("xlam", "```json\n[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]\n```", PARIS),
    ("olmo_3", "<function_calls>get_weather(city=\"Paris\")</function_calls><|im_end|>", PARIS),
    ("apertus", "<|tools_prefix|>[{\"get_weather\": {\"city\": \"Paris\"}}]<|tools_suffix|><|assistant_end|>", PARIS),
    (
        "gigachat",
        "<|function_call|>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}<|message_sep|>",
        PARIS,
    ),
    ("gigachat", "function call{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}", PARIS),
    ("minicpm", "<function name=\"get_weather\"><param name=\"city\">Paris</param></function>", PARIS),
    ("minicpm", "<|tool_call_start|>\n```python\nget_weather(city=\"Paris\")\n```\n<|tool_call_end|>", PARIS),
    ("granite", "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]", PARIS),
    (
        "granite",
        "<function_call> {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}<|endoftext|>",
        PARIS,
    ),
    (
        "nemotron",
        "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]</TOOLCALL><SPECIAL_12>",
        PARIS,
    ),
    ("qwen_coder", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>", PARIS),
    ("anthropic", "<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>", PARIS),
    (
        "hunyuan_v3",
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call></tool_calls><|eos|>",
        PARIS,
    ),
    (
        "hunyuan_v3",
        "<tool_calls:opensource>\n<tool_call:opensource>get_weather<arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Paris</arg_value:opensource></tool_call:opensource>\n</tool_calls:opensource>",
        PARIS,
    ),
    (
        "hunyuan_v3",
        "<tool_calls>\n<tool_call>now<tool_sep>\n</tool_call>\n</tool_calls>",
        "[{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "k2_horizon",
        "<ifm|tool_calls><ifm|tool_call>get_weather<ifm|arg_key>city</ifm|arg_key><ifm|arg_type>string</ifm|arg_type><ifm|arg_value>Paris</ifm|arg_value></ifm|tool_call></ifm|tool_calls>",
        PARIS,
    ),
    (
        "k2_horizon",
        "<ifm|tool_calls>\n<ifm|tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</ifm|tool_call>\n</ifm|tool_calls>",
        PARIS,
    ),
    (
        "solar_open",
        "<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>\n<|tool_call:end|><|im_end|>",
        PARIS,
    ),
    ("solar_open", "<|tool_call:start|>now\n<|tool_call:end|>", "[{\"name\":\"now\",\"arguments\":{}}]"),
    (
        "plamo_3",
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{\"city\": \"Paris\"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|><|plamo:tag|>",
        PARIS,
    ),
    (
        "inkling",
        "<|content_invoke_tool_json|>{\"name\": \"get_weather\", \"args\": {\"city\": \"Paris\"}}<|end_message|><|content_model_end_sampling|>",
        PARIS,
    ),
    (
        "inkling",
        "<|message_model|>get_weather<|content_invoke_tool_json|>{\"name\": \"get_weather\", \"args\": {\"city\": \"Paris\"}}<|end_message|>",
        PARIS,
    ),
    (
        "muse",
        " to=get_weather<|message|><atem:function_calls>\n<atem:invoke name=\"get_weather\">\n<atem:parameter name=\"city\">Paris</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>",
        PARIS,
    ),
    (
        "dots",
        "<dots_function_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</dots_function_call>",
        PARIS,
    ),
    (
        "pangu",
        "<|tool_call_start|>\n[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]\n<|tool_call_end|>",
        PARIS,
    ),
    (
        "hyperclova_x",
        " -> tool/function_call\n[{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}]<|im_end|>",
        PARIS,
    ),
    (
        "step_3",
        "<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name=\"now\"></steptml:invoke><｜tool_call_end｜><｜tool_sep｜><｜tool_call_begin｜><steptml:invoke name=\"now\"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        "[{\"name\":\"now\",\"arguments\":{}},{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "lfm2",
        "<|tool_call_start|>[run(command='cat <<EOF\nx\nEOF')]<|tool_call_end|>",
        "[{\"name\":\"run\",\"arguments\":{\"command\":\"cat <<EOF\\nx\\nEOF\"}}]",
    ),
    (
        "minicpm",
        "<function name=\"run\"><param name=\"command\"><![CDATA[echo '</param>'\n]]></param></function>",
        "[{\"name\":\"run\",\"arguments\":{\"command\":\"echo '</param>'\\n\"}}]",
    ),
    (
        "minimax_m2",
        "<minimax:tool_call><invoke name=\"run\"><parameter name=\"command\">  ls\n</parameter></invoke></minimax:tool_call>",
        "[{\"name\":\"run\",\"arguments\":{\"command\":\"  ls\\n\"}}]",
    ),
    (
        "deepseek_v3_2",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter name=\"arguments\" string=\"false\">{\"city\": \"Paris\"}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
        PARIS,
    ),
    (
        "kimi_k3",
        "<|open|> tools <|sep|><|open|> call tool=\"now\" index=\"1\"<|sep|><|close|> call <|sep|><|close|> tools <|sep|>",
        "[{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "deepseek_v3_2",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"now\"/>\n</｜DSML｜tool_calls>",
        "[{\"name\":\"now\",\"arguments\":{}}]",
    ),
    (
        "pythonic",
        "[run(command=\"grep -E '\\d+\\.' x\")]",
        "[{\"name\":\"run\",\"arguments\":{\"command\":\"grep -E '\\\\d+\\\\.' x\"}}]",
    ),
    (
        "muse",
        "<|start|>assistant to=now.now<|message|><atem:function_calls>\n<atem:invoke name=\"now.now\">\n</atem:invoke>\n</atem:function_calls><|eom|>",
        "[{\"name\":\"now\",\"arguments\":{}}]",
    ),
];

const PARIS: &str = r#"[{"name":"get_weather","arguments":{"city":"Paris"}}]"#;
