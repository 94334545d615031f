local SS = [[
LISTEN 0      4096   127.0.0.53%lo:53         0.0.0.0:*
LISTEN 0      511        0.0.0.0:3000         0.0.0.0:*    users:(("node",pid=42,fd=18),("node",pid=42,fd=19))
LISTEN 0      511           [::]:3000            [::]:*    users:(("node",pid=42,fd=20))
LISTEN 0      5          [::1]:8000            [::]:*    users:(("py (3) \"x",pid=7,fd=3))
LISTEN 0      5      192.168.1.4:9000         0.0.0.0:*    users:(("a",pid=9,fd=3))
]]
local PS = "     42 ada   01:02:03 node server.js --port 3000\n      7 bo    00:10 python3 -m http.server\n"

local asked
local function machine(programs)
  asked = {}
  fake.exec(function(command, args)
    asked[#asked + 1] = command .. " " .. table.concat(args, " ")
    return programs[command] or error("hygge.exec: can't start " .. command, 0)
  end)
end

describe("ports", function()
  it("shows who listens", function()
    machine { ss = SS, ps = PS }
    local result = call("ports")
    expect(result.content).to_be(table.concat({
      "53 on this machine only: a process of another user",
      "3000 on every address: pid 42 of ada, up 01:02:03: node server.js --port 3000",
      "8000 on this machine only: pid 7 of bo, up 00:10: python3 -m http.server",
      "9000 on 192.168.1.4: pid 9",
    }, "\n"))
    expect(result.metadata.listening).to_be(4)
    expect(asked).to_equal { "ss -H -l -t -n -p", "ps -o pid=,user=,etime=,args= -p 42,7,9" }
  end)

  it("answers for one port", function()
    machine { ss = SS, ps = PS }
    expect(call("ports", { port = 3000 }).content).to_match("^3000 on every address: [^\n]*$")
    expect(call("ports", { port = 4000 }).content).to_be("nothing listens on port 4000")
    machine { ss = "" }
    expect(call("ports").content).to_be("nothing listens on a TCP port")
  end)

  it("uses lsof where there is no ss", function()
    machine { lsof = "p42\nf18\nn*:3000\np7\nn127.0.0.1:8000\nn[::1]:8000\n", ps = PS }
    expect(call("ports", { port = 8000 }).content).to_match("^8000 on this machine only: pid 7 [^\n]*$")
  end)

  it("says what is missing, and what was refused", function()
    machine {}
    local result = call("ports")
    expect(result.is_error).to_be(true)
    expect(result.content).to_contain("iproute2")
    machine { ss = { code = 1, stderr = "not allowed: shell ss" }, lsof = { code = 1, stderr = "not allowed: shell lsof" } }
    expect(call("ports").content).to_be("not allowed: shell lsof")
  end)

  it("keeps to one line for each process", function()
    machine { ss = 'LISTEN 0 1 *:80 *:* users:(("x",pid=1,fd=1))', ps = "1 root 1-00:00 x " .. string.rep("a\27b", 100) .. "\n" }
    local line = call("ports").content
    expect(#line < 250).to_be(true)
    expect(line).never.to_contain("\27")
    expect(line).to_contain("...")
  end)
end)
