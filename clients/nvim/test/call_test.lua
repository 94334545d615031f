local support = require("support")
local uv = vim.uv or vim.loop
local wait, equal, contains = support.wait, support.equal, support.contains

fact_of_its_own("a first call starts the daemon", function(scene)
  equal("", scene.toold.statusline())
  local err, result = scene.call("greet", { name = "Ada" })
  equal(nil, err)
  equal("hello Ada", result.content[1].text)
  equal("toold", scene.toold.statusline())
end)

fact("a tool that fails has a result, one that cannot run an error", function(scene)
  local err, result = scene.call("fail", {})
  equal(nil, err)
  equal(true, result.is_error)
  contains("out of luck", result.content[1].text)
  err = scene.call("gret", { name = "Ada" })
  equal(-32001, err.code)
  equal("greet", err.data.suggestions[1])
  err = scene.call("greet", {})
  equal("invalid_args", err.data.kind)
end)

fact("progress reaches the caller and the statusline", function(scene)
  local seen = {}
  scene.connect()
  local done
  local call = scene.toold.call("wait_for_ever", {}, {
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
  equal("toold: wait_for_ever 1/2 waiting", scene.toold.statusline())
  equal("toold: wait_for_ever 1/2 waiting", support.noticed("1/2"))
  call.cancel()
  wait("the end", function()
    return done
  end)
  equal(-32800, done.code)
  equal("toold", scene.toold.statusline())
end)

fact("ToolCancel cancels what began last", function(scene)
  scene.connect()
  vim.cmd("Tool wait_for_ever")
  wait("the call runs", function()
    return scene.toold.statusline():find("waiting")
  end)
  local id = require("toold.calls").running[1].id
  equal({ id }, vim.fn.getcompletion("ToolCancel ", "cmdline"))
  vim.cmd("ToolCancel")
  support.noticed("cancelled")
  equal({}, require("toold.calls").running)
  vim.cmd("ToolCancel")
  support.noticed("no call is running")
end)

fact("a call that is cancelled before it is connected never runs", function(scene)
  scene.toold.setup({})
  local done
  local call = scene.toold.call("wait_for_ever", {}, {}, function(err)
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

fact_of_its_own("the output of a program that does not start is shown", function(scene)
  local program = scene.write("broken", "#!/bin/sh\necho no luck today >&2\nexit 3\n")
  vim.fn.setfperm(program, "rwx------")
  scene.toold.setup({ toold = program, connect = false })
  local failure
  scene.toold.connect(function(err)
    failure = err
  end)
  wait("the failure", function()
    return failure
  end)
  contains("exit status 3", failure.message)
  contains("no luck today", failure.message)
end)

fact_of_its_own("without permission to start one, a missing daemon is an error", function(scene)
  scene.toold.setup({ start = false, connect = false })
  local err = scene.call("greet", { name = "Ada" })
  equal("not_running", err.kind)
end)

fact_of_its_own("another program at the socket is recognised, and no daemon is started in its place", function(scene)
  local cases = {
    { "is not the socket of a daemon", function(client) client:write("HTTP/1.1 400 Bad Request\r\n\r\n") end },
    { "closes each connection", function(client) client:close() end },
  }
  for _, case in ipairs(cases) do
    local socket = vim.env.TOOLD_SOCKET or require("toold.paths").socket({})
    vim.fn.mkdir(vim.fn.fnamemodify(socket, ":h"), "p", 448)
    local server, clients = uv.new_pipe(false), {}
    assert(server:bind(socket))
    server:listen(16, function()
      local client = uv.new_pipe(false)
      server:accept(client)
      clients[#clients + 1] = client
      case[2](client)
    end)
    scene.toold.setup({ connect = false, start_timeout_ms = 500 })
    local failure
    scene.toold.connect(function(err)
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

fact_of_its_own("a lost connection is restored with its session, and starts no daemon", function(scene)
  scene.connect()
  local session = require("toold.client").session.id
  scene.stop_daemon()
  wait("the loss is seen", function()
    return not scene.toold.connected()
  end)
  equal("", scene.toold.statusline())
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
    return scene.toold.connected()
  end)
  equal(session, require("toold.client").session.id)
  local _, result = scene.call("greet", { name = "Bo" })
  equal("hello Bo", result.content[1].text)
end)

fact_of_its_own("a call in flight ends with the connection, and the next one starts a daemon", function(scene)
  scene.connect()
  local done
  scene.toold.call("wait_for_ever", {}, {}, function(err)
    done = err
  end)
  wait("it runs", function()
    return scene.toold.statusline():find("waiting")
  end)
  for _, pid in ipairs(scene.processes()) do
    (vim.uv or vim.loop).kill(pid, "sigkill")
  end
  wait("the end", function()
    return done
  end)
  equal("disconnected", done.kind)
  local err, result = scene.call("greet", { name = "Cy" })
  equal(nil, err)
  equal("hello Cy", result.content[1].text)
end)

fact("the session follows the editor's folder", function(scene)
  scene.connect()
  vim.fn.mkdir(scene.work .. "/below")
  scene.write("below/inner.txt", "inside\n")
  vim.cmd("cd below")
  wait("the session moves", function()
    local session = require("toold.client").session
    return session and session.cwd == scene.work .. "/below"
  end)
  local _, result = scene.call("read", { path = "inner.txt" })
  contains("inside", result.content[1].text)
end)

fact("commands find the toolchains that the editor finds", function(scene)
  local before = {}
  for name, value in pairs({ VIRTUAL_ENV = "/a/venv", LC_TIME = "C", SOMETHING = "else", GOPATH = "\255" }) do
    before[name] = vim.env[name] or false
    vim.env[name] = value
  end
  support.answer(function()
    return "Allow once"
  end)
  scene.connect()
  local _, result = scene.call("bash", { command = "env" })
  for name, value in pairs(before) do
    vim.env[name] = value or nil
  end
  local output = "\n" .. result.content[1].text .. "\n"
  contains("\nVIRTUAL_ENV=/a/venv\n", output)
  contains("\nLC_TIME=C\n", output)
  contains("\nPATH=" .. scene.base .. "/bin:", output)
  equal(nil, output:find("\nSOMETHING=", 1, true))
  equal(nil, output:find("\nGOPATH=", 1, true))
  equal("open", require("toold.client").session.workspace)
end)
