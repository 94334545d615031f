local support = require("support")
local uv = vim.uv or vim.loop
local wait, equal, contains = support.wait, support.equal, support.contains

fact_of_its_own("a first call starts the daemon", function(place)
  equal("", place.toold.statusline())
  local err, result = place.call("greet", { name = "Ada" })
  equal(nil, err)
  equal("hello Ada", result.content[1].text)
  equal("toold", place.toold.statusline())
end)

fact("a tool that has bad news gives a result, one that cannot run an error", function(place)
  local err, result = place.call("fail", {})
  equal(nil, err)
  equal(true, result.is_error)
  contains("out of luck", result.content[1].text)
  err = place.call("gret", { name = "Ada" })
  equal(-32001, err.code)
  equal("greet", err.data.suggestions[1])
  err = place.call("greet", {})
  equal("invalid_args", err.data.kind)
end)

fact("progress reaches the caller and the statusline", function(place)
  local seen = {}
  place.connect()
  local done
  local call = place.toold.call("wait_for_ever", {}, {
    on_progress = function(progress)
      seen[#seen + 1] = progress
    end,
  }, function(err)
    done = err
  end)
  wait("progress", function()
    return #seen > 0
  end)
  equal("waiting", seen[1].message)
  equal("toold: wait_for_ever 1/2 waiting", place.toold.statusline())
  equal("toold: wait_for_ever 1/2 waiting", support.noticed("1/2"))
  call.cancel()
  wait("the end", function()
    return done
  end)
  equal(-32800, done.code)
  equal("toold", place.toold.statusline())
end)

fact("ToolCancel cancels what began last", function(place)
  place.connect()
  vim.cmd("Tool wait_for_ever")
  wait("the call runs", function()
    return place.toold.statusline():find("waiting")
  end)
  local id = require("toold.calls").running[1].id
  equal({ id }, vim.fn.getcompletion("ToolCancel ", "cmdline"))
  vim.cmd("ToolCancel")
  support.noticed("cancelled")
  equal({}, require("toold.calls").running)
  vim.cmd("ToolCancel")
  support.noticed("nothing runs")
end)

fact("a call that is cancelled before it is connected never runs", function(place)
  place.toold.setup({})
  local done
  local call = place.toold.call("wait_for_ever", {}, {}, function(err)
    done = err
  end)
  call.cancel()
  wait("the end", function()
    return done
  end)
  equal(-32800, done.code)
end)

fact_of_its_own("many editors start one daemon", function()
  local start = require("toold.start")
  local found = {}
  for i = 1, 8 do
    start.connect(require("toold.config").options, function()
      return true
    end, function(err, connection)
      assert(not err, vim.inspect(err))
      connection:request("daemon.status", {}, function(_, status)
        found[i] = status.pid
        connection:close()
      end)
    end)
  end
  wait("all are connected", function()
    return vim.tbl_count(found) == 8
  end)
  for i = 2, 8 do
    equal(found[1], found[i])
  end
end)

fact_of_its_own("a program that does not start is told with its words", function(place)
  local program = place.write("broken", "#!/bin/sh\necho no luck today >&2\nexit 3\n")
  vim.fn.setfperm(program, "rwx------")
  place.toold.setup({ toold = program, connect = false })
  local failure
  place.toold.connect(function(err)
    failure = err
  end)
  wait("the failure", function()
    return failure
  end)
  contains("exit status 3", failure.message)
  contains("no luck today", failure.message)
end)

fact_of_its_own("without leave to start, a missing daemon is told", function(place)
  place.toold.setup({ start = false, connect = false })
  local err = place.call("greet", { name = "Ada" })
  equal("not_running", err.kind)
end)

fact_of_its_own("another program at the socket is told from a daemon, and none is started in its place", function(place)
  local cases = {
    { "is not the socket of a daemon", function(client) client:write("HTTP/1.1 400 Bad Request\r\n\r\n") end },
    { "closes each connection", function(client) client:close() end },
  }
  for _, case in ipairs(cases) do
    local socket = vim.env.TOOLD_SOCKET or require("toold.place").socket({})
    vim.fn.mkdir(vim.fn.fnamemodify(socket, ":h"), "p", 448)
    local server, clients = uv.new_pipe(false), {}
    assert(server:bind(socket))
    server:listen(16, function()
      local client = uv.new_pipe(false)
      server:accept(client)
      clients[#clients + 1] = client
      case[2](client)
    end)
    place.toold.setup({ connect = false, start_timeout_ms = 500 })
    local failure
    place.toold.connect(function(err)
      failure = err
    end)
    wait("the failure", function()
      return failure
    end)
    contains(case[1], failure.message)
    equal(nil, uv.fs_stat(socket .. ".log"))
    for _, client in ipairs(clients) do
      if not client:is_closing() then
        client:close()
      end
    end
    server:close()
    uv.fs_unlink(socket)
  end
end)

fact_of_its_own("a lost connection is put up again with its session, and starts no daemon", function(place)
  place.connect()
  local session = require("toold.client").session.id
  place.stop_daemon()
  wait("the loss is seen", function()
    return not place.toold.connected()
  end)
  equal("", place.toold.statusline())
  -- Somebody else starts it.
  local back
  require("toold.start").connect(require("toold.config").options, function()
    return true
  end, function(_, connection)
    back = connection
  end)
  wait("the daemon is back", function()
    return back
  end)
  wait("the editor is back", function()
    return place.toold.connected()
  end)
  equal(session, require("toold.client").session.id)
  local _, result = place.call("greet", { name = "Bo" })
  equal("hello Bo", result.content[1].text)
end)

fact_of_its_own("a call in flight ends with the connection, and the next one starts a daemon", function(place)
  place.connect()
  local done
  place.toold.call("wait_for_ever", {}, {}, function(err)
    done = err
  end)
  wait("it runs", function()
    return place.toold.statusline():find("waiting")
  end)
  for _, pid in ipairs(place.processes()) do
    (vim.uv or vim.loop).kill(pid, "sigkill")
  end
  wait("the end", function()
    return done
  end)
  equal("disconnected", done.kind)
  local err, result = place.call("greet", { name = "Cy" })
  equal(nil, err)
  equal("hello Cy", result.content[1].text)
end)

fact("the session follows the editor's folder", function(place)
  place.connect()
  vim.fn.mkdir(place.work .. "/below")
  place.write("below/inner.txt", "inside\n")
  vim.cmd("cd below")
  wait("the session moves", function()
    local session = require("toold.client").session
    return session and session.cwd == place.work .. "/below"
  end)
  local _, result = place.call("read", { path = "inner.txt" })
  contains("inside", result.content[1].text)
end)

fact("commands find the toolchains that the editor finds", function(place)
  local before = {}
  for name, value in pairs({ VIRTUAL_ENV = "/a/venv", LC_TIME = "C", SOMETHING = "else", GOPATH = "\255" }) do
    before[name] = vim.env[name] or false
    vim.env[name] = value
  end
  support.answer(function()
    return "Allow once"
  end)
  place.connect()
  local _, result = place.call("bash", { command = "env" })
  for name, value in pairs(before) do
    vim.env[name] = value or nil
  end
  local said = "\n" .. result.content[1].text .. "\n"
  contains("\nVIRTUAL_ENV=/a/venv\n", said)
  contains("\nLC_TIME=C\n", said)
  contains("\nPATH=" .. place.base .. "/bin:", said)
  equal(nil, said:find("\nSOMETHING=", 1, true))
  equal(nil, said:find("\nGOPATH=", 1, true))
  equal("open", require("toold.client").session.workspace)
end)
