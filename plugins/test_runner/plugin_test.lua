local asked
local function runs(output, more)
  fake.exec(function(command, args, options)
    asked = { line = command .. " " .. table.concat(args, " "), dir = options.dir }
    local result = more or {}
    result.stdout = output
    return result
  end)
end

local CARGO = [[
   Compiling demo v0.1.0
running 3 tests
test adds ... ok
test größe::minus ... FAILED
test other ... FAILED

failures:

---- größe::minus stdout ----
thread 'größe::minus' panicked at src/lib.rs:9:5:
assertion `left == right` failed
  left: 1
 right: 2

---- other stdout ----
other failed

failures:
    größe::minus
    other

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests demo
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
]]

describe("cargo", function()
  before(function() fake.file("Cargo.toml", "[package]") end)

  it("shows the failures and the sums", function()
    runs(CARGO, { code = 101, stderr = "error: test failed, to rerun pass `--lib`\nerror: 1 target failed:\n" })
    local result = call("run_tests")
    expect(result.is_error).to_be(true)
    expect(result.content).to_match("^cargo test %-%-no%-fail%-fast %-%-color=never failed with status 101 in %d+%.%d s: 5 passed, 2 failed\n")
    expect(result.content).to_contain("\n== größe::minus\nthread 'größe::minus' panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n== other\nother failed")
    expect(result.content).never.to_contain("Compiling")
    expect(result.metadata).to_equal { runner = "cargo", passed = 5, failed = 2, failures = 2, code = 101 }
  end)

  it("is brief when all is well", function()
    runs("test result: ok. 4 passed; 0 failed; 0 ignored\n")
    local result = call("run_tests", { filter = "größe and more" })
    expect(result.content).to_match("^cargo test .- größe and more passed in %d+%.%d s: 4 passed, 0 failed$")
    expect(result.is_error).to_be(false)
    expect(asked.line).to_be("cargo test --no-fail-fast --color=never größe and more")
  end)

  it("shows what the compiler says", function()
    runs("", { code = 101, stderr = "warning: unused\n\nerror[E0425]: cannot find value `x`\n --> src/lib.rs:1:1\n\nerror: could not compile\n" })
    expect(call("run_tests").content).to_contain("== the compiler\nerror[E0425]: cannot find value `x`\n --> src/lib.rs:1:1\n")
  end)

  it("shows output that it does not understand, bounded and without control characters", function()
    runs("\27[31mred\27[0m\7\n" .. string.rep("line of output\n", 5000), { code = 1 })
    local text = call("run_tests").content
    expect(text).to_contain("\nred\nline of output\n")
    expect(text).to_match("%[%d+ lines left out%]")
    expect(#text < 9000).to_be(true)
    runs("x", { timed_out = true })
    expect(call("run_tests").content).to_contain("stopped: the time was over")
  end)

  it("bounds many and long failures", function()
    local parts = {}
    for i = 1, 60 do parts[i] = "---- t" .. i .. " stdout ----\n" .. string.rep("a long line of a failure\n", 200) end
    runs(table.concat(parts), { code = 101 })
    local text = call("run_tests").content
    expect(text).to_contain("more failures: use filter]")
    expect(#text < 30000).to_be(true)
  end)

  it("asks for exactly what it runs", function()
    runs("")
    call("run_tests", { filter = "a b" })
    local found = needs("run_tests", { filter = "a b" })
    expect(found[1].category).to_be("shell")
    expect(found[1].target).to_be("cargo test --no-fail-fast --color=never 'a b'")
    expect(found[1].reason).to_be("runs the project's tests")
    expect(function() call("run_tests", { filter = "--config=x" }) end).to_raise("filter")
  end)

  it("says how to get the runner, and passes on a refusal", function()
    fake.exec(function() error("hygge.exec: no cargo", 0) end)
    expect(call("run_tests").content).to_contain("Install Rust: rustup.rs")
    fake.exec(function() return { code = 1, stderr = "not allowed: shell cargo test" } end)
    expect(call("run_tests").content).to_contain("not allowed: shell cargo test")
  end)
end)

describe("other runners", function()
  it("are found by their files", function()
    local empty = call("run_tests")
    expect(empty.is_error).to_be(true)
    expect(empty.content).to_contain("has no tests that this tool knows")
    for i, case in ipairs {
      { { "go.mod" }, "go test -v ./..." },
      { { "package.json" }, "npm test" },
      { { "package.json", "pnpm-lock.yaml" }, "pnpm test" },
      { { "package.json", "bun.lock" }, "bun run test" },
      { { "pyproject.toml" }, "python3 -m pytest -q --tb=short --color=no" },
      { { "pyproject.toml", ".venv/bin/python" }, ".venv/bin/python -m pytest -q --tb=short --color=no" },
    } do
      local dir = "a b/" .. i
      for _, name in ipairs(case[1]) do
        fake.file(dir .. "/" .. name, name:match("json$") and '{"scripts": {"test": "vitest"}}' or "[tool.pytest.ini_options]")
      end
      runs("")
      expect(call("run_tests", { path = dir }).is_error).to_be(false)
      expect(asked).to_equal { line = case[2], dir = dir }
    end
  end)

  it("have filters", function()
    for runner, line in pairs { go = "go test -v -run x ./...", npm = "npm test -- x", pytest = "python3 -m pytest -q --tb=short --color=no -k x" } do
      runs("")
      call("run_tests", { runner = runner, filter = "x" })
      expect(asked.line).to_be(line)
    end
  end)

  it("are not run when package.json has no tests, or is none", function()
    for _, text in ipairs { "{", "[]", '{"scripts": 3}', '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}' } do
      fake.file("package.json", text)
      expect(call("run_tests").content).to_contain("has no tests")
    end
  end)

  it("show their failures", function()
    local go = "=== RUN   TestAdd\n    add_test.go:9: got 1\n--- FAIL: TestAdd (0.00s)\n    add_test.go:10: want 2\n--- PASS: TestB (0.00s)\nFAIL\nFAIL\texample.org/x\t0.1s\n"
    local pytest = "F.\n=================================== FAILURES ===================================\n__________ test_add __________\na.py:2: in test_add\n    assert 1 == 2\nE   assert 1 == 2\n=========================== short test summary info ============================\nFAILED a.py::test_add - assert 1 == 2\n1 failed, 1 passed in 0.02s\n"
    local jest = "FAIL ./a.test.js\n  ● adds › one\n\n    expect(received).toBe(expected)\n\n      at a.test.js:3\n\nTests:       1 failed, 2 passed, 3 total\n"
    local node = "✖ adds (0.5ms)\n✔ other (0.1ms)\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.test.js:3:1\n✖ adds (0.5ms)\n  AssertionError: 1 == 2\n      at a.test.js:4\n"
    local tap = "TAP version 13\nok 1 - other\nnot ok 2 - adds\n  ---\n  message: 'no'\n  ...\n# pass 1\n# fail 1\n"
    for _, case in ipairs {
      { "go", go, "1 passed, 1 failed", "== TestAdd\n    add_test.go:10: want 2" },
      { "pytest", pytest, "1 passed, 1 failed", "== test_add\na.py:2: in test_add\n    assert 1 == 2\nE   assert 1 == 2" },
      { "npm", jest, "2 passed, 1 failed", "== adds › one\n\n    expect(received).toBe(expected)\n\n      at a.test.js:3" },
      { "npm", node, "1 passed, 1 failed", "== adds\n  AssertionError: 1 == 2\n      at a.test.js:4" },
      { "npm", tap, "1 passed, 1 failed", "== adds\n  ---\n  message: 'no'" },
    } do
      runs(case[2], { code = 1 })
      local text = call("run_tests", { runner = case[1] }).content
      expect(text).to_contain(case[3])
      expect(text).to_contain(case[4])
    end
  end)
end)
