/** Past calls, written into the database of a daemon that does not run: 10,000 real calls would take too long. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import type { TestDaemon } from "./fixtures.ts";

export const ROWS = 10_000;
/** The rows are of the four hours from here on. */
export const BEGIN = Date.parse("2026-01-15T08:00:00Z");

const FILL = `
import json, math, sqlite3, sys
path, count, begin = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
state = 1
def random():
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return state / 2**31
tools = [("read", "file.read", 4), ("grep", "file.read", 30), ("edit", "file.write", 12), ("bash", "shell", 900),
         ("git_log", "shell", 60), ("web_fetch", "network", 1400), ("index_project", "file.read", 5200)]
commands = ["cargo test -p shop", "git status", "npm run build", "rm -rf build", "python3 -m pytest"]
rows = []
for at in range(count):
    tool, category, typical = tools[min(int(random() ** 1.7 * len(tools)), len(tools) - 1)]
    agent = ["claude-code", "codex"][at % 3 == 0]
    target = commands[int(random() * 5)] if category == "shell" else f"/home/ada/shop/src/part{int(random() * 40)}.rs"
    denied = category == "shell" and random() < 0.12
    failed = not denied and random() < 0.05
    verdict, rule = ("deny", "your answer to the ask") if denied else ("allow", "grant of category " + category)
    decisions = [{"category": category, "target": target, "verdict": verdict, "rule": rule}]
    # Busy and quiet times.
    time = begin + int((at / count + 0.035 * math.sin(25 * at / count)) * 4 * 3600_000 + 4 * 160_000 + 1000 * random())
    rows.append((time, f"call-{at}", f"{agent}-1", tool, "plugin:traffic" if tool in ("git_log", "index_project") else "builtin:toold",
                 agent, 1 + at % 3, json.dumps(decisions), "denied" if denied else "error" if failed else "ok",
                 2 if denied else int(typical * (0.4 + 2 * random() ** 3)), int(40 + 400 * random()), int(8000 * random() ** 2)))
with sqlite3.connect(path) as connection:
    connection.executemany("INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, "
                           "duration_ms, input_bytes, output_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    saves = any(column[1] == "original_ms" for column in connection.execute("PRAGMA table_info(audit)"))
    if saves:
        connection.execute("UPDATE audit SET original_ms = 40 + id % 60, duration_ms = 0 WHERE tool = 'grep' AND id % 3 = 0")
    print(saves)
`;

/** Returns whether the database has what the cache saved. */
export async function fillAudit(daemon: TestDaemon): Promise<boolean> {
  const database = join(daemon.paths.environment["XDG_STATE_HOME"]!, "toold/toold.db");
  const { stdout } = await promisify(execFile)("python3", ["-c", FILL, database, String(ROWS), String(BEGIN)]);
  return stdout.trim() === "True";
}
