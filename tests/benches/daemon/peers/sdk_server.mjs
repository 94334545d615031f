// A server of one tool on the official TypeScript SDK, on stdio.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const server = new McpServer({ name: 'bench', version: '1' })
server.registerTool('noop', { inputSchema: { text: z.string() } }, ({ text }) => ({
  content: [{ type: 'text', text }],
}))
await server.connect(new StdioServerTransport())
