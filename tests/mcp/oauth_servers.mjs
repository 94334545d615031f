// An authorization server and an MCP server that it protects, for the test of logins.
//
// The authorization server is oidc-provider, as it is, with its own pages for logging in and consenting. The MCP server
// checks its tokens (issuer, audience, scope) and has two tools, of which `admin` needs a scope that a first login lacks.
//
//     node oauth_servers.mjs FOLDER_OF_NODE_MODULES
//
// Prints one line of JSON with both addresses. Access tokens are valid for 14 s, and toold refreshes them 3 s earlier.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.argv[2]}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Provider } = await load('oidc-provider');
const { createRemoteJWKSet, jwtVerify } = await load('jose');

const listen = async (server) => {
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${server.address().port}`;
};

let answerMcp;
const mcp = await listen(createServer((request, response) => answerMcp(request, response)));
const resource = `${mcp}/mcp`;
let answerIssuer;
const issuer = await listen(createServer((request, response) => answerIssuer(request, response)));

const refreshes = { count: 0, revoked: 0 };
const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', 'mcp:read', 'mcp:admin'],
  features: {
    registration: { enabled: true },
    devInteractions: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, indicator) => {
        if (indicator !== resource) throw new Error(`unknown resource ${indicator}`);
        return { scope: 'mcp:read mcp:admin', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 14 };
      },
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
provider.on('grant.success', (context) => {
  if (context.oidc.params.grant_type === 'refresh_token') refreshes.count += 1;
});
provider.on('refresh_token.destroyed', () => {
  refreshes.revoked += 1;
});
answerIssuer = provider.callback();

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const metadata = `${mcp}/.well-known/oauth-protected-resource/mcp`;
const tools = ['whoami', 'admin'].map((name) => ({ name, inputSchema: { type: 'object' } }));

const send = (response, status, body, headers = {}) => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
};

answerMcp = async (request, response) => {
  if (request.url === '/.well-known/oauth-protected-resource/mcp') {
    return send(response, 200, { resource, authorization_servers: [issuer], scopes_supported: ['mcp:read'] });
  }
  if (request.url === '/refreshes') return send(response, 200, refreshes);
  if (request.url !== '/mcp') return send(response, 404, {});
  const challenge = (status, more) =>
    send(response, status, {}, { 'WWW-Authenticate': `Bearer resource_metadata="${metadata}"${more}` });
  let token;
  try {
    const bearer = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    token = (await jwtVerify(bearer, keys, { issuer, audience: resource })).payload;
  } catch {
    return challenge(401, ', scope="mcp:read"');
  }
  if (request.method !== 'POST') return send(response, 405, {});
  let body = '';
  for await (const piece of request) body += piece;
  const message = JSON.parse(body);
  if (message.id === undefined) return send(response, 202);
  const answer = (result) => send(response, 200, { jsonrpc: '2.0', id: message.id, result });
  switch (message.method) {
    case 'initialize':
      return answer({
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'protected', version: '1' },
      });
    case 'tools/list':
      return answer({ tools });
    case 'tools/call': {
      const scopes = (token.scope ?? '').split(' ');
      if (message.params.name === 'admin' && !scopes.includes('mcp:admin')) {
        return challenge(403, ', error="insufficient_scope", scope="mcp:admin"');
      }
      return answer({ content: [{ type: 'text', text: `${token.sub} with ${[...scopes].sort().join(' ')}` }] });
    }
    default:
      return send(response, 200, { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'unknown' } });
  }
};

console.log(JSON.stringify({ issuer, resource, refreshes: `${mcp}/refreshes` }));
