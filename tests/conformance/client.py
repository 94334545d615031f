"""A client for the official client suite: a daemon that mounts the suite's server.

The suite starts `client.py PROGRAMS URL` for each scenario. The script starts `toold` with the server mounted, calls its
tools as an agent's frontend does, and logs in with `toolctl mcp login` when an error asks for it.
"""

import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mcp"))
from mounted import PATIENCE, Failed, Mounted, needs_login, text_of  # noqa: E402

# The suite's own document, which is never fetched.
CLIENT_ID_URL = "https://conformance-test.local/client-metadata.json"
# What a person would put up with.
MAX_LOGINS = 3
FOCAL_TOOL = "s_json_schema_2020_12_tool"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def follow(page):
    """Goes from the page of a login to where it redirects to, as a browser does."""
    opener = urllib.request.build_opener(NoRedirect)
    for _ in range(10):
        try:
            with opener.open(page, timeout=PATIENCE) as answer:
                return answer.read()
        except urllib.error.HTTPError as answer:
            if answer.code not in (301, 302, 303, 307, 308):
                raise Failed(f"{page} answers {answer.code}") from None
            page = urllib.parse.urljoin(page, answer.headers["Location"])
    raise Failed("the login redirects for ever")


class Client:
    def __init__(self, mounted, context):
        self.mounted = mounted
        self.wire = mounted.connect()
        self.context = context
        self.logins = 0

    def login(self):
        self.logins += 1
        if self.logins > MAX_LOGINS:
            raise Failed("the server asks for one login after another")
        self.mounted.login(follow)

    def learned(self):
        """Waits until the server has listed its tools, and logs in when it asks for that."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            server = self.mounted.server(self.wire)
            if server["state"] == "running" or server["tools"]:
                return [tool for tool in self.wire.call("tools.list", {})["tools"] if tool["source"]["kind"] == "mcp"]
            if needs_login(server.get("error")):
                self.login()
            elif server["state"] == "failed" and server["starts"] > 2:
                raise Failed(server["error"])
            time.sleep(0.05)
        raise Failed(f"the server does not start: {server}")

    def call(self, tool, arguments):
        while True:
            result = self.wire.call("tools.execute", {"name": tool, "arguments": arguments})
            text = text_of(result)
            print(f"{tool}: {text}")
            if not (result["is_error"] and needs_login(text)):
                return
            self.login()

    def run(self):
        tools = self.learned()
        for planned in self.context.get("toolCalls", []):
            self.call("s_" + planned["name"], planned["arguments"])
        if "toolCalls" not in self.context:
            for tool in tools:
                # Its schema, which takes no example, is the argument of another tool.
                if tool["name"] != FOCAL_TOOL:
                    self.call(tool["name"], arguments_for(tool, tools))


def arguments_for(tool, tools):
    """A value of the type of each required argument; for the tool that compares schemas, the schema that it waits for."""
    schema = tool["input_schema"]
    if tool["name"] == "s_json_schema_echo":
        return {"schema": next(other["input_schema"] for other in tools if other["name"] == FOCAL_TOOL)}
    examples = {"string": "text", "integer": 1, "number": 2, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: examples.get(properties.get(name, {}).get("type"), "text") for name in schema.get("required", [])}


def configuration(url, scenario, context, token):
    text = f'[mcp.oauth]\nclient_id_url = "{CLIENT_ID_URL}"\n\n[mcp.servers.s]\nurl = {json.dumps(url)}\n'
    if scenario == "auth/pre-registration":
        text += f"[mcp.servers.s.oauth]\nclient_id = {json.dumps(context['client_id'])}\n"
        text += f"client_secret = {json.dumps(context['client_secret'])}\n"
    if scenario == "auth/client-credentials-basic":
        text += '[mcp.servers.s.oauth]\ngrant = "client_credentials"\n'
        text += f"client_id = {json.dumps(context['client_id'])}\nclient_secret = {json.dumps(context['client_secret'])}\n"
    if scenario == "auth/wif-jwt-bearer":
        # As the platform of a workload places it.
        with open(token, "w") as file:
            file.write(context["valid_jwt"])
        text += '[mcp.servers.s.oauth]\ngrant = "jwt_bearer"\n'
        text += f"client_id = {json.dumps(context['client_id'])}\nassertion_file = {json.dumps(token)}\n"
    if scenario == "auth/enterprise-managed-authorization":
        with open(token, "w") as file:
            file.write(context["idp_id_token"])
        text += '[mcp.servers.s.oauth]\ngrant = "id_jag"\n'
        text += f"client_id = {json.dumps(context['client_id'])}\nclient_secret = {json.dumps(context['client_secret'])}\n"
        text += f"assertion_file = {json.dumps(token)}\n[mcp.servers.s.oauth.identity_provider]\n"
        text += f"client_id = {json.dumps(context['idp_client_id'])}\n"
        text += f"token_endpoint = {json.dumps(context['idp_token_endpoint'])}\n"
    return text


def main():
    programs, url = sys.argv[1:]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory(prefix="toold-suite-") as folder:
        scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO")
        mounted = Mounted(programs, configuration(url, scenario, context, os.path.join(folder, "token")))
        try:
            Client(mounted, context).run()
        except Failed as why:
            print(f"{why}\n{mounted.log()}", file=sys.stderr)
            return 1
        finally:
            mounted.end()
    return 0


sys.exit(main())
