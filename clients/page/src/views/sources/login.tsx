/** Logging in to a mounted server: the login page opens in a tab of its own, which ends in this page again. */
import { useState } from "preact/hooks";
import type { McpLoginBeginResult, McpServer } from "toold/browser";

import { request } from "../../daemon.ts";
import { redirectAddress } from "../../login-redirect.ts";
import { quote } from "../../shell.ts";
import { Text } from "../../text.tsx";
import { Time } from "../../time.tsx";
import { toast } from "../../toasts.tsx";
import { Action } from "./action.tsx";
import { Section } from "./parts.tsx";

export function Login({ server, onDone }: { server: McpServer; onDone: () => void }) {
  const { name, login } = server;
  const [begun, setBegun] = useState<McpLoginBeginResult>();
  const [redirected, setRedirected] = useState("");
  const redirect = redirectAddress();
  const done = () => {
    setBegun(undefined);
    setRedirected("");
    onDone();
  };
  const logOut = async () => {
    const { not_revoked } = await request("mcp.logout", { name });
    toast(not_revoked ? `Logged out, but its tokens stay valid until they expire: ${not_revoked}` : "Logged out");
  };
  const waiting = begun !== undefined && login?.state !== "logged_in";
  return (
    <Section title="Login">
      {login && <LoginFacts login={login} />}
      <div class="buttons">
        <Action
          label={login?.state === "logged_in" ? "Log in again" : "Log in"}
          tone={login?.state === "required" ? "primary" : undefined}
          command={`toolctl mcp login ${quote(name)}`}
          run={async () => setBegun(await request("mcp.login.begin", { name, redirect_uri: redirect.uri }))}
        />
        {login?.state === "logged_in" && (
          <Action label="Log out" command={`toolctl mcp logout ${quote(name)}`} run={logOut} onDone={done} />
        )}
      </div>
      {waiting && (
        <div class="card">
          <p>
            {begun.issuer ? (
              <>
                <Text value={begun.issuer} /> asks you to log in
              </>
            ) : (
              "Log in"
            )}
            {begun.scopes.length > 0 && (
              <>
                {" "}
                for <Text value={begun.scopes.join(", ")} />
              </>
            )}
            :
          </p>
          <p>
            {/^https?:\/\//i.test(begun.url) ? (
              <a href={begun.url} target="_blank" rel="noopener noreferrer">
                Open the login page
              </a>
            ) : (
              "The server's login page has an address that this page does not open."
            )}{" "}
            <Text class="dim small" value={begun.url} />
          </p>
          <p class="dim">
            {redirect.here
              ? "The login ends in that tab, which tells this daemon. If it shows an error, paste its address here."
              : "The login ends at an address that does not load, which does no harm. Copy it, and paste it here."}
          </p>
          <label>
            Address at which the login ended
            <input
              type="url"
              autocomplete="off"
              spellcheck={false}
              value={redirected}
              onInput={(event) => setRedirected(event.currentTarget.value)}
            />
          </label>
          <div class="buttons">
            <Action
              label="Finish the login"
              disabled={redirected.trim() === ""}
              run={() => request("mcp.login.finish", { redirected_to: redirected.trim() }, { timeout: Infinity })}
              onDone={done}
            />
          </div>
        </div>
      )}
    </Section>
  );
}

function LoginFacts({ login }: { login: NonNullable<McpServer["login"]> }) {
  return (
    <dl class="facts">
      {login.issuer && (
        <>
          <dt>Authorization server</dt>
          <dd>
            <Text value={login.issuer} />
          </dd>
        </>
      )}
      {login.scopes && (
        <>
          <dt>Scopes</dt>
          <dd>
            <Text value={login.scopes.join(", ") || "none"} />
          </dd>
        </>
      )}
      {login.expires && (
        <>
          <dt>Token expires</dt>
          <dd>
            <Time at={login.expires} />
          </dd>
        </>
      )}
      {login.state === "locked" && (
        <>
          <dt>Locked</dt>
          <dd>
            Unlock the secrets in a terminal: <code>toolctl secrets unlock</code>
          </dd>
        </>
      )}
    </dl>
  );
}
