#!/usr/bin/env python3
"""An MCP server of somebody else, on stdio: its tools `allow` and `deny` make a file of their name.

    server.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}} for name in ("allow", "deny")]


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "other", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        (Path(sys.argv[1]) / f"mcp-{params['name']}").touch()
        return {"content": [{"type": "text", "text": "done"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if message.get("id") is not None:
        result = answer(message.get("method", ""), message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
