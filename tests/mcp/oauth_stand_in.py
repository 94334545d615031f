"""An MCP server that wants a login, and its authorization server, in one program. The page of the login asks nothing.

Prints its address. What it saw is at /seen; /refuse makes the next login fail, /expire makes the tokens invalid, /forgets
makes it refresh no token until /knows, since it knows no client, /forgets_once gives the next login no token for the same
reason, /keep and /stall make it refuse to revoke tokens and not answer when it is asked to. It gives a token without a login
to the client `service` with the password `pass: word`, and for the assertion `a.work.load`.
"""

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

codes, valid, refresh_tokens = {}, {}, {}
seen = {"registrations": 0, "refreshes": 0, "resources": [], "revoked": [], "redirects": [], "unattended": 0}
state = {"refuse": False, "revokes": True, "forgets": False, "forgets_once": False, "answers": threading.Event()}
state["answers"].set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body=None, headers=()):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/oauth-protected-resource/mcp":
            self.send(200, {"resource": base + "/mcp", "authorization_servers": [base], "scopes_supported": ["read"]})
        elif url.path == "/.well-known/oauth-authorization-server":
            self.send(200, {
                "issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
                "registration_endpoint": base + "/register", "revocation_endpoint": base + "/revoke",
                "code_challenge_methods_supported": ["S256"],
                "response_types_supported": ["code"], "authorization_response_iss_parameter_supported": True,
            })
        elif url.path == "/authorize":
            answer = {"state": query["state"], "iss": base}
            if state["refuse"]:
                answer |= {"error": "access_denied", "error_description": "not today"}
            else:
                code = "code-" + secrets.token_hex(16)
                codes[code] = query
                seen["redirects"].append(query["redirect_uri"])
                answer["code"] = code
            self.send(302, None, [("Location", query["redirect_uri"] + "?" + urlencode(answer))])
        elif url.path == "/seen":
            self.send(200, seen)
        elif url.path == "/refuse":
            state["refuse"] = True
            self.send(200)
        elif url.path == "/keep":
            state["revokes"] = False
            self.send(200)
        elif url.path == "/stall":
            state["answers"].clear()
            self.send(200)
        elif url.path in ("/forgets", "/forgets_once"):
            state[url.path[1:]] = True
            self.send(200)
        elif url.path == "/knows":
            state["forgets"] = False
            self.send(200)
        elif url.path == "/expire":
            valid.clear()
            refresh_tokens.clear()
            self.send(200)
        else:
            self.send(404)

    def do_POST(self):
        body = self.body()
        if self.path == "/register":
            seen["registrations"] += 1
            given = json.loads(body)
            self.send(201, {"client_id": "client-1", "redirect_uris": given["redirect_uris"]})
        elif self.path == "/token":
            self.token({name: values[0] for name, values in parse_qs(body.decode()).items()})
        elif self.path == "/revoke":
            self.revoke({name: values[0] for name, values in parse_qs(body.decode()).items()})
        elif self.path == "/mcp":
            self.mcp(json.loads(body))
        else:
            self.send(404)

    def token(self, form):
        seen["resources"].append(form.get("resource"))
        if form["grant_type"] == "authorization_code":
            asked = codes.pop(form["code"], None)
            if state["forgets_once"]:
                state["forgets_once"] = False
                return self.send(401, {"error": "invalid_client"})
            challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
            if asked is None or asked["code_challenge"].encode() != challenge:
                return self.send(400, {"error": "invalid_grant"})
            scope = asked.get("scope", "")
        elif form["grant_type"] == "client_credentials":
            name, _, password = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
            if (unquote_plus(name), unquote_plus(password)) != ("service", "pass: word"):
                return self.send(401, {"error": "invalid_client", "error_description": "who is this?"})
            scope = form.get("scope", "")
        elif form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            if form["assertion"] != "a.work.load":
                return self.send(400, {"error": "invalid_grant"})
            scope = form.get("scope", "")
        else:
            seen["refreshes"] += 1
            if state["forgets"]:
                return self.send(401, {"error": "invalid_client", "error_description": "who is this?"})
            scope = refresh_tokens.pop(form["refresh_token"], None)
            if scope is None:
                return self.send(400, {"error": "invalid_grant"})
        access, refresh = "access-" + secrets.token_hex(16), "refresh-" + secrets.token_hex(16)
        valid[access] = scope
        if form["grant_type"] not in ("authorization_code", "refresh_token"):
            seen["unattended"] += 1
            return self.send(200, {"access_token": access, "token_type": "Bearer", "expires_in": 3600})
        refresh_tokens[refresh] = scope
        # The first token is used up at once.
        expires = 0 if form["grant_type"] == "authorization_code" else 3600
        self.send(200, {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": expires})

    def revoke(self, form):
        state["answers"].wait()
        if not state["revokes"]:
            return self.send(503, {})
        kind, client = form["token_type_hint"], form.get("client_id")
        known = {"access_token": valid, "refresh_token": refresh_tokens}[kind].pop(form["token"], None)
        seen["revoked"].append(f"{kind} of {client}" if known is not None else "nothing")
        self.send(200)

    def mcp(self, message):
        scope = valid.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        metadata = f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        if scope is None:
            return self.send(401, {}, [("WWW-Authenticate", metadata + ', scope="read"')])
        if "id" not in message:
            return self.send(202)
        method = message["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "s", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write", "never")]}
        elif method == "tools/call":
            needed = message["params"]["name"]
            if needed == "never" or needed not in scope.split():
                challenge = metadata + f', error="insufficient_scope", scope="{needed}"'
                return self.send(403, {}, [("WWW-Authenticate", challenge)])
            result = {"content": [{"type": "text", "text": f"{needed} with {scope}"}]}
        else:
            return self.send(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
        self.send(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
base = f"http://127.0.0.1:{server.server_port}"
print(base, flush=True)
server.serve_forever()
