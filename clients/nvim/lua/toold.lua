--- A client of the toold daemon. This is what others may call; `:help toold` says the same for people.

local M = {}

local ready = false

--- Takes the options of `:help toold-options` and looks for a daemon, without starting one. May be called again.
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
    vim.api.nvim_create_autocmd("VimLeavePre", { group = group, callback = M.stop, desc = "toold: hang up" })
  end
  if require("toold.config").options.connect then
    client.look()
  end
end

--- As `setup` with nothing to say, unless it was called before.
function M.ensure()
  if not ready then
    M.setup({})
  end
end

--- Connects, starting a daemon when there is none. `callback(err)`; `err` has a `message`.
function M.connect(callback)
  M.ensure()
  require("toold.client").connect({ start = require("toold.config").options.start }, function(err)
    if callback then
      callback(err)
    end
  end)
end

--- Hangs up, and stays so until the next call. What runs is cancelled by the daemon.
function M.stop()
  require("toold.client").stop()
end

function M.connected()
  return require("toold.client").connected()
end

--- The tools as `tools.list` gave them last; empty before the first connection.
function M.tools()
  return require("toold.client").tools
end

--- Calls a tool. `callback(err, result)`, on the main loop. Gives a handle with `cancel()`.
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

--- For a statusline: what runs, how many asks wait, or `toold` when connected and idle; else the empty text.
function M.statusline()
  return require("toold.status").line()
end

return M
