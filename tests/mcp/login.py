"""Logs in at a real authorization server: oidc-provider, with its own pages.

    login.py PROGRAMS NODE FOLDER_OF_NODE_MODULES
"""

import http.cookiejar
import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

from mounted import PATIENCE, Failed, Mounted, needs_login, text_of

HERE = Path(__file__).resolve().parent


def browser():
    """A browser with cookies that a person uses: fills in the login, and consents."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def follow(page):
        for _ in range(10):
            with opener.open(page, timeout=PATIENCE) as answer:
                html, page = answer.read().decode(), answer.geturl()
            form = re.search(r'<form[^>]*action="([^"]+)"', html)
            if form is None:
                return
            fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', html))
            if 'name="login"' in html:
                fields.update(login="ada", password="a password")
            action = urllib.parse.urljoin(page, form.group(1).replace("&amp;", "&"))
            page = urllib.request.Request(action, urllib.parse.urlencode(fields).encode())
        raise Failed("the pages of the login do not end")

    return follow


def wait(what, found):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = found()
        if result:
            return result
        time.sleep(0.1)
    raise Failed(f"{what}, which took too long")


def main():
    programs, node, modules = sys.argv[1:]
    servers = subprocess.Popen([node, HERE / "oauth_servers.mjs", modules], stdout=subprocess.PIPE, stderr=sys.stderr)
    addresses = json.loads(servers.stdout.readline())
    mounted = Mounted(programs, f'[mcp.servers.s]\nurl = "{addresses["resource"]}"\n')
    follow = browser()

    def step(words):
        print(f"{time.monotonic() - began:5.1f} s  {words}", flush=True)

    def call(wire, tool):
        result = wire.call("tools.execute", {"name": tool, "arguments": {}})
        return result["is_error"], text_of(result)

    began = time.monotonic()
    try:
        wire = mounted.connect()
        error = wait("the server asks for a login", lambda: mounted.server(wire).get("error"))
        assert needs_login(error), error
        step(f"before: {error}")
        mounted.login(follow)
        wait("the tools are listed", lambda: mounted.server(wire)["tools"])
        failed, text = call(wire, "s_whoami")
        assert not failed and text == "ada with mcp:read", text
        step(f"s_whoami: {text}")

        failed, text = call(wire, "s_admin")
        assert failed and needs_login(text) and "mcp:admin" in text, text
        step(f"s_admin: {text}")
        mounted.login(follow)
        failed, text = call(wire, "s_admin")
        assert not failed and text == "ada with mcp:admin mcp:read", text
        step(f"s_admin: {text}")

        # An agent of another connection needs no login of its own, and may not make one.
        agent = mounted.connect()
        agent.call("session.open", {"cwd": mounted.path("work"), "role": "agent"})
        try:
            agent.call("mcp.login.begin", {"name": "s", "redirect_uri": "http://127.0.0.1:1/callback"})
            raise AssertionError("an agent may log in")
        except Failed as refused:
            step(f"an agent: {refused}")

        def refreshes():
            with urllib.request.urlopen(addresses["refreshes"], timeout=PATIENCE) as answer:
                return json.load(answer)["count"]

        def revocations():
            with urllib.request.urlopen(addresses["refreshes"], timeout=PATIENCE) as answer:
                return json.load(answer)["revoked"]

        # Refresh tokens are rotated: a second refresh works only with the token that the first one brought.
        for number in (1, 2):
            wait("the token is refreshed", lambda: call(wire, "s_whoami") and refreshes() >= number)
            failed, text = call(wire, "s_whoami")
            assert not failed and text.startswith("ada with"), text
            step(f"s_whoami after refresh {number}: {text}")

        mounted.stop()
        mounted.start()
        wire = mounted.connect()
        failed, text = call(wire, "s_admin")
        assert not failed and text == "ada with mcp:admin mcp:read", text
        step(f"s_admin after a restart of the daemon: {text}")
        step("toolctl mcp status:\n" + mounted.toolctl("mcp", "status"))

        secrets = Path(mounted.path("state", "toold", "secrets.json")).read_text()
        shown = mounted.log() + mounted.toolctl("config", "show") + mounted.toolctl("mcp", "servers", "--json") + secrets
        # A JWT has a dot after its header. Encrypted bytes in Base64 may contain "eyJ" by chance, but never a dot.
        assert "access_token" not in secrets and not re.search(r"eyJ[\w-]+\.", shown), "a token is shown"
        before = revocations()
        # The refresh token is revoked; the access token is a JWT, which this server cannot take back.
        said = mounted.toolctl("mcp", "logout", "s").strip()
        assert revocations() == before + 1 and "revokes no access token" in said, said
        step(said)
        failed, text = call(wire, "s_whoami")
        assert failed and needs_login(text), text
        step(f"after the logout: {text}")
    except BaseException:
        print(mounted.log(), file=sys.stderr)
        raise
    finally:
        mounted.end()
        servers.terminate()
        servers.wait()
    print("the login at a real authorization server works")


main()
