// The official TypeScript SDK, version 1 or 2, as a client of the daemon that uses mounted servers.
//
//     matrix_client.mjs MAJOR FOLDER_OF_NODE_MODULES SERVERS TOOLCTL
//     matrix_client.mjs MAJOR FOLDER_OF_NODE_MODULES SERVERS URL TOKEN
//
// SERVERS and the output are those of matrix_client.py.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [major, modules, servers, place, token] = process.argv.slice(2);
const PATIENCE = 30_000;
const require = createRequire(`${modules}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const versionOf = (name) =>
  JSON.parse(readFileSync(`${modules}/node_modules/@modelcontextprotocol/${name}/package.json`, 'utf8')).version;

const sdk =
  major === '1'
    ? {
        version: versionOf('sdk'),
        ...(await load('@modelcontextprotocol/sdk/client/index.js')),
        ...(await load('@modelcontextprotocol/sdk/client/stdio.js')),
        ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await load('@modelcontextprotocol/sdk/types.js')),
      }
    : {
        version: versionOf('client'),
        ...(await load('@modelcontextprotocol/client')),
        ...(await load('@modelcontextprotocol/client/stdio')),
      };

let changed = () => {};
const options = { capabilities: { elicitation: { form: {} } } };
if (major === '2') options.listChanged = { tools: { autoRefresh: false, onChanged: () => changed() } };
const client = new sdk.Client({ name: 'matrix', version: '1' }, options);
const answer = async () => ({ action: 'accept', content: { color: 'red' } });
if (major === '1') {
  client.setRequestHandler(sdk.ElicitRequestSchema, answer);
  client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, () => changed());
} else {
  client.setRequestHandler('elicitation/create', answer);
}
const transport = token
  ? new sdk.StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new sdk.StdioClientTransport({ command: place, args: ['mcp'], env: process.env });
await client.connect(transport);

const call = (name, args = {}, more = {}) =>
  major === '1'
    ? client.callTool({ name, arguments: args }, undefined, more)
    : client.callTool({ name, arguments: args }, more);

async function text(result) {
  const { content, isError } = await result;
  const words = content.map((block) => block.text ?? '').join(' ');
  if (isError) throw new Error(words);
  return words;
}

function check(holds, words) {
  if (!holds) throw new Error(words);
}

async function until(ask) {
  const end = Date.now() + PATIENCE;
  while (!(await ask())) {
    check(Date.now() < end, 'waited in vain');
    await new Promise((done) => setTimeout(done, 100));
  }
}

const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
const number = async (tool) => Number(await text(call(tool)));

const actions = {
  async list(given) {
    check((await names()).includes(given), `${given} is not listed`);
  },
  async call(given) {
    check((await text(call(given.name, given.arguments))).includes(given.words), 'another result');
  },
  async progress(given) {
    const heard = [];
    await text(call(given.name, given.arguments, { onprogress: ({ progress }) => heard.push(progress) }));
    check(heard.length > 0 && heard.every((one, at) => at === 0 || one >= heard[at - 1]), `progress: ${heard}`);
  },
  async cancel(tools) {
    const before = await number(tools.count);
    const giveUp = new AbortController();
    const waiting = call(tools.wait, {}, { signal: giveUp.signal }).catch(() => {});
    await until(async () => (await number(tools.running)) > 0);
    giveUp.abort();
    await waiting;
    await until(async () => (await number(tools.count)) > before);
  },
  async elicitation(tool) {
    check((await text(call(tool))).includes('red'), 'another answer');
  },
  async grow(tool, server) {
    const name = `grown${randomUUID().slice(0, 6)}`;
    let heard = false;
    changed = () => (heard = true);
    await text(call(tool, { name }));
    await until(() => heard);
    check((await names()).includes(`${server}_${name}`), `${server}_${name} is not listed`);
    check((await text(call(`${server}_${name}`))).includes('grown'), 'another result');
  },
};

const limit = (work) =>
  Promise.race([
    work,
    new Promise((_, fail) => setTimeout(() => fail(new Error('no answer')), 2 * PATIENCE).unref()),
  ]);

const done = {};
for (const [server, wanted] of Object.entries(JSON.parse(servers))) {
  done[server] = {};
  for (const [action, given] of Object.entries(wanted)) {
    try {
      await limit(actions[action](given, server));
      done[server][action] = 'ok';
    } catch (error) {
      done[server][action] = String(error.message ?? error).slice(0, 300);
    }
  }
}
await client.close();
console.log(JSON.stringify({ client: `TypeScript SDK ${sdk.version}`, done }));
process.exit(0);
