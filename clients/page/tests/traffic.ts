/** Tools that tests let agents call. */
export const TRAFFIC = `
hygge.register_tool{
  name = "index_project", description = "Reads all files of a project", parallelizable = true,
  input_schema = {type = "object", properties = {project = {type = "string"}}},
  execute = function(ctx, input)
    ctx.output("reading src/main.rs\\nreading src/page.rs\\nreading src/text.rs\\n")
    ctx.progress{message = "3 of 8 files", progress = 3, total = 8}
    hygge.sleep("1h")
  end,
}
hygge.register_tool{
  name = "ticks", description = "Reports progress for ever", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx)
    for i = 1, 100000 do
      ctx.output("line " .. i .. "\\n")
      ctx.progress{message = "step " .. i, progress = i % 100, total = 100}
      hygge.sleep("100ms")
    end
  end,
}
hygge.register_tool{
  name = "say", description = "Returns a text, and writes it as output", parallelizable = true,
  input_schema = {type = "object", properties = {text = {type = "string"}}, required = {"text"}},
  execute = function(ctx, input) ctx.output(input.text) ctx.progress(input.text) return input.text end,
}
hygge.register_tool{
  name = "say_and_wait", description = "Writes a text as output, and waits", parallelizable = true,
  input_schema = {type = "object", properties = {text = {type = "string"}}, required = {"text"}},
  execute = function(ctx, input) ctx.output(input.text) ctx.progress(input.text) hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "pick_port", description = "Asks for a port", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    local answer = ctx.question{question = "Which port?", options = {"3000", "8080"}, allow_other = true}
    if not answer then return "no answer" end
    return answer.text or answer.ids[1]
  end,
}
hygge.register_tool{
  name = "release", description = "Asks for the data of a release", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    local answer = ctx.elicit{message = "What is released?", schema = {type = "object", properties = {
      version = {type = "string", title = "Version"}, channel = {type = "string", enum = {"beta", "stable"}},
      days = {type = "integer", minimum = 1}, notify = {type = "boolean"},
    }, required = {"version", "channel"}}}
    return answer.action .. " " .. hygge.json.encode(answer.content or {})
  end,
}
hygge.register_tool{
  name = "long_line", description = "Writes one line of 10 MB", parallelizable = true, input_schema = {type = "object"},
  execute = function(ctx)
    local piece = string.rep("tea ", 262144)
    for i = 1, 10 do ctx.output(piece) end
    ctx.progress("written")
    hygge.sleep("1h")
  end,
}
`;

/** Texts that must neither run, nor hide, nor move anything. */
export const HOSTILE = [
  "<script>window.pwned = 1</script>",
  "<img src=x onerror='window.pwned = 1'>",
  "<svg onload='window.pwned = 1'></svg>",
  "</code></pre></div><h1>Approved</h1><style>* { display: none }</style>",
  "<iframe src='https://example.com/frame'></iframe><link rel=stylesheet href='https://example.com/a.css'>",
  "[click](javascript:window.pwned=1) ![picture](https://example.com/a.png) <https://example.com>",
  "{{constructor.constructor('window.pwned = 1')()}} ${window.pwned = 1}",
  "\u001b[2J\u001b]0;title\u0007\u001b]8;;https://example.com\u0007link\u001b]8;;\u0007",
  "rm -rf \u202etxt.nur\u202c \u2066isolated\u2069 \u200bhidden \u{e0041}tag",
  "carriage\rreturn, back\b\bspace, delete\u007f",
];
