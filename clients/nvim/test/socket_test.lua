--- Where the socket is, by the cases that the clients in all languages are tested with.

local support = require("support")

fact("the socket is found as in the table", function()
  local folder = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
  local file = assert(io.open(folder .. "/../../../proto/tests/socket.json", "rb"))
  local cases = vim.json.decode(file:read("*a"))
  file:close()
  assert(#cases > 10)
  for _, case in ipairs(cases) do
    local files = case.files or {}
    local system = {
      uid = 7,
      read = function(path)
        return type(files[path]) == "table" and vim.json.encode(files[path]) or files[path]
      end,
      is_folder = function(path)
        return vim.tbl_contains(case.folders or {}, path)
      end,
    }
    local found = require("toold.paths").socket({}, case.environment, system)
    support.equal(case.socket, found or vim.NIL)
  end
end)
