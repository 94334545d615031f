--- A client of the toold daemon. These functions are the public API; `:help toold` documents them.

local M = {}

local ready = false

--- Sets the options of `:help toold-options` and connects to a running daemon, without starting one. May be called
--- again.
function M.setup(options)
  require("toold.config").set(options)
  local client = require("toold.client")
  if not ready then
    ready = true
    local group = vim.api.nvim_create_augroup("toold", { clear = true })
    require("toold.buffers").attach(group)
    vim.api.nvim_create_autocmd("DirChanged", {
      group = group,
      pattern = "global",
      callback = client.move,
      desc = "toold: work in the new folder",
    })
    vim.api.nvim_create_autocmd("VimLeavePre", { group = group, callback = M.stop, desc = "toold: disconnect" })
  end
  if require("toold.config").options.connect then
    client.look()
  end
end

--- `setup` without options, unless it was called before.
function M.ensure()
  if not ready then
    M.setup({})
  end
end

--- Connects, and starts a daemon if none is running. `callback(err)`; `err` has a `message`.
function M.connect(callback)
  M.ensure()
  require("toold.client").connect({ start = require("toold.config").options.start }, function(err)
    if callback then
      callback(err)
    end
  end)
end

--- Disconnects until the next call. The daemon cancels running calls.
function M.stop()
  require("toold.client").stop()
end

function M.connected()
  return require("toold.client").connected()
end

--- The tools of the last `tools.list`; empty before the first connection.
function M.tools()
  return require("toold.client").tools
end

--- Calls a tool. `callback(err, result)`, on the main loop. Returns a handle with `cancel()`.
--- `options`: `timeout_ms`, and `on_progress(progress)` for each `tools.progress`.
function M.call(name, arguments, options, callback)
  M.ensure()
  return require("toold.calls").execute(name, arguments, options or {}, callback or function() end)
end

--- Any other request of the protocol. `callback(err, result)`.
function M.request(method, params, callback)
  M.connect(function(err)
    if err then
      return callback(err)
    end
    require("toold.client").request(method, params, callback)
  end)
end

--- For a statusline: running calls, open permission requests, or `toold` when connected and idle; else an empty string.
function M.statusline()
  return require("toold.status").line()
end

return M
