// Stands between the conformance suite, which cannot send a token, and the daemon, which takes nothing without
// one. All else passes as it is. When the suite calls a tool whose name says that a list is to change, a
// plugin is saved, as a person would do it.
//
// usage: node proxy.mjs DAEMON_URL TOKEN_FILE PLUGIN_FOLDER; prints its own URL

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";

const [url, tokenFile, plugins] = process.argv.slice(2);
const daemon = new URL(url);
const token = readFileSync(tokenFile, "utf8").trim();
let saved = 0;

function save(name, text) {
  const path = join(plugins, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function changeLists(body) {
  saved += 1;
  if (body.includes('"test_trigger_tool_change"')) {
    save(
      "changing_tool.lua",
      `hygge.register_tool({ name = "changing_tool", description = "Version ${saved}", execute = function() end })\n`,
    );
  }
  if (body.includes('"test_trigger_prompt_change"')) {
    save(
      "changing_prompt.lua",
      `hygge.register_prompt({ name = "changing_prompt", description = "Version ${saved}", render = function() return "" end })\n`,
    );
  }
}

const server = createServer((incoming, outgoing) => {
  const options = {
    host: daemon.hostname,
    port: daemon.port,
    path: incoming.url,
    method: incoming.method,
    headers: { ...incoming.headers, authorization: `Bearer ${token}` },
    agent: false,
  };
  const forwarded = request(options, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
    answer.on("error", () => outgoing.destroy());
  });
  forwarded.setNoDelay(true);
  forwarded.on("error", () => outgoing.destroy());
  outgoing.on("close", () => forwarded.destroy());
  const seen = [];
  incoming.on("data", (piece) => seen.push(piece));
  incoming.on("end", () => changeLists(Buffer.concat(seen).toString()));
  incoming.pipe(forwarded);
});

server.listen(0, "127.0.0.1", () => console.log(`http://localhost:${server.address().port}/mcp`));
