-- Put together here, so that this file has no key in it.
local GITHUB = "gh" .. "p_" .. "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
local AWS = "AK" .. "IA" .. "Q3EGRIJ7SVKTWNMB"
local PRIVATE = "-----BEGIN RSA PRIV" .. "ATE KEY-----\n" .. string.rep("MIIEpQ+/9zKd", 5) .. "\n-----END RSA"

local written
before(function()
  written = {}
  hygge.config.allow, hygge.config.mask = nil, nil
  for _, name in ipairs { "write", "edit", "apply_patch", "bash" } do
    fake.tool(name, function(input)
      written[#written + 1] = input
      return "done"
    end)
  end
end)

describe("a call", function()
  it("with a key is refused, and the key is not repeated", function()
    for _, key in ipairs { GITHUB, AWS, PRIVATE, "glpat-" .. "ab12CD34ef56GH78ij90", "xoxb-" .. "17653672481-19874698323" } do
      local result = call("write", { path = "a.env", content = "x=1\ny=" .. key .. "\n" })
      expect(result.is_error).to_be_truthy()
      expect(result.content).to_contain('"content" has a')
      expect(result.content).to_contain("environment variable")
      expect(result.content).never.to_contain(key:sub(-12))
    end
    expect(#written).to_be(0)
  end)

  it("is looked at as a whole", function()
    expect(call("bash", { command = "curl -H 'Authorization: Bearer " .. GITHUB .. "' x" }).is_error).to_be_truthy()
    expect(call("edit", { path = "a", edits = { { old = "x", new = AWS } } }).content).to_contain('"new" has an AWS access key')
    expect(call("write", { path = "a.json", content = (PRIVATE:gsub("\n", "\\n")) }).content).to_contain("a private key")
  end)

  it("may take a key out of a file", function()
    expect(call("edit", { path = "a", old = GITHUB, new = "os.getenv('TOKEN')" }).content).to_be("done")
    local patch = "*** Begin Patch\n*** Update File: a\n-%s\n+%s\n*** End Patch"
    expect(call("apply_patch", { input = patch:format(GITHUB, "os.getenv('TOKEN')") }).content).to_be("done")
    expect(call("apply_patch", { input = patch:format("x", GITHUB) }).content).to_contain('"input" has a GitHub token')
  end)

  it("with placeholders, hashes and texts about keys goes on", function()
    for _, text in ipairs {
      "AKIAIOSFODNN7EXAMPLE", "ghp_" .. string.rep("x", 36), "sk-ant-your-key-goes-here-and-nowhere-else-ok", "",
      "-----BEGIN PRIVATE KEY-----", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "größe 日本", "MAKIAQ3EGRIJ7SVKTWNMBX",
    } do
      expect(call("write", { path = "a", content = text }).content).to_be("done")
    end
  end)

  it("with a text that the configuration allows goes on", function()
    hygge.config.allow = { "Q3EGRIJ7" }
    expect(call("write", { path = "a", content = AWS }).content).to_be("done")
    expect(call("write", { path = "a", content = GITHUB }).is_error).to_be_truthy()
  end)
end)

describe("a result", function()
  it("shows no keys", function()
    fake.tool("read", function() return "1: TOKEN=" .. GITHUB .. "\n2: KEY=" .. AWS .. " # größe" end)
    expect(call("read").content)
      .to_be("1: TOKEN=[a GitHub token, hidden by secrets_guard]\n2: KEY=[an AWS access key, hidden by secrets_guard] # größe")
  end)

  it("stays as it is without keys, and when masking is off", function()
    fake.tool("read", function() return "1: TOKEN=" .. GITHUB end)
    hygge.config.mask = false
    expect(call("read").content).to_contain(GITHUB)
    fake.tool("read", function() return { content = "no keys", is_error = true } end)
    hygge.config.mask = nil
    local result = call("read")
    expect(result.content).to_be("no keys")
    expect(result.is_error).to_be(true)
  end)
end)

describe("find_secrets", function()
  it("shows where they are", function()
    fake.file("-a b.txt", "one\ntwo " .. AWS .. "\n" .. GITHUB)
    fake.file("b.bin", "\0" .. AWS)
    local result = call("find_secrets")
    expect(result.content)
      .to_be("-a b.txt:2: an AWS access key\n-a b.txt:3: a GitHub token\n[not read, or binary: 1]")
    expect(result.metadata.found).to_be(2)
    expect(call("find_secrets", { glob = "*.none" }).content).to_be("no secrets in the files that were read: 0")
  end)
end)
