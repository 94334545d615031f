// Lets toold judge the tools of opencode. Written by `toolctl agents install opencode`; removed with --undo.
import { spawn } from "node:child_process"

const TOOLCTL = "TOOLCTL"
// The answer when toold does not run or toolctl is gone: "closed" denies, "open" leaves it to opencode.
const ON_FAILURE = "FAIL"
// Where toold is, as at the installation: a repository may set these variables for opencode.
const VARIABLES = ["VARIABLES"]

// opencode's agent in each conversation, and the conversation that started it as a sub-agent.
const agents = new Map()
const parents = new Map()
// They write texts of a conversation whose agent is another one.
const WRITERS = ["compaction", "summary", "title"]

// A sub-agent of the agent `plan` plans, too.
function mode(session) {
  const seen = new Set()
  for (let id = session; id && !seen.has(id); id = parents.get(id)) {
    if (agents.get(id) === "plan") return "plan"
    seen.add(id)
  }
}

function hook(event, directory, input, args) {
  const call = {
    hook_event_name: event,
    cwd: directory,
    session_id: input.sessionID,
    tool_use_id: input.callID,
    permission_mode: mode(input.sessionID),
  }
  return new Promise((resolve) => {
    const child = spawn(
      TOOLCTL,
      ["hook", "opencode", "--fail", ON_FAILURE, "--limit", "LIMIT", ...VARIABLES.flatMap((variable) => ["--env", variable])],
      { stdio: ["pipe", "pipe", "inherit"] },
    )
    let answer = ""
    child.stdout.on("data", (data) => (answer += data))
    const missing = { decision: "deny", reason: "toolctl is gone, and its hook is set to deny then" }
    child.on("error", () => resolve(ON_FAILURE === "closed" ? missing : {}))
    child.on("close", (status) => {
      const denial = { decision: "deny", reason: "toold could not answer" }
      try {
        resolve(answer ? JSON.parse(answer) : status === 0 ? {} : denial)
      } catch {
        resolve(denial)
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ ...call, tool_name: input.tool, tool_input: args }))
  })
}

export const Toold = async ({ directory }) => {
  await hook("session.start", directory, {}, {})
  return hooks(directory)
}

const hooks = (directory) => ({
  "tool.execute.before": async (input, output) => {
    const { decision, reason } = await hook("tool.execute.before", directory, input, output.args)
    if (decision === "deny") throw new Error(reason)
  },
  "chat.params": async ({ sessionID, agent }) => {
    if (!WRITERS.includes(agent)) agents.set(sessionID, agent)
  },
  event: async ({ event }) => {
    const { id, parentID } = event.properties?.info ?? {}
    if (event.type === "session.created" && parentID) parents.set(id, parentID)
    // Tools that opencode itself refused have no end of their own.
    if (event.type === "session.idle") await hook("session.idle", directory, { sessionID: event.properties.sessionID }, {})
  },
  "tool.execute.after": async (input) => {
    await hook("tool.execute.after", directory, input, input.args)
  },
})
