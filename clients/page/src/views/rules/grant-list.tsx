/** Remembered permissions and refusals: who got them, how often they decided, and how to revoke or merge them. */
import { signal } from "@preact/signals";
import type { Category, Grant, PermissionsReviewResult } from "toold/browser";

import { Badge } from "../../components.tsx";
import { confirm } from "../../confirm.tsx";
import { commandLine } from "../../shell.ts";
import { Text, oneLine } from "../../text.tsx";
import { ago, Time } from "../../time.tsx";
import { report, toast } from "../../toasts.tsx";
import { grantId, mergeGrants, permissions, refresh, refusals, review, revoke } from "./permissions.ts";
import { Entry } from "./rule-list.tsx";
import { VerdictBadge } from "./verdict.tsx";

type Proposal = PermissionsReviewResult["proposals"][number];

/** Proposals that the person does not want, until the page is loaded again. */
const rejected = signal<ReadonlySet<string>>(new Set());

export function GrantList() {
  const grants = permissions.value?.grants ?? [];
  return (
    <section class="stack" aria-labelledby="grants-title">
      <h2 id="grants-title">Grants</h2>
      {permissions.value && grants.length === 0 && (
        <p class="dim">No grants. An answer that holds longer than once creates one.</p>
      )}
      <ul class="entries" aria-label="Grants">
        {grants.map((grant) => (
          <GrantRow key={grant.id} grant={grant} />
        ))}
      </ul>
    </section>
  );
}

function GrantRow({ grant }: { grant: Grant }) {
  const { category, pattern, action, tools, chain, uses, used_at, granted_at, expires_at, asked, by, id } = grant;
  return (
    <Entry id={grantId(grant)}>
      <div class="row">
        <VerdictBadge verdict={action} /> <code>{category}</code> <Text class="mono grow" value={pattern} max={600} />
        <button
          type="button"
          class="danger"
          aria-label={`Revoke ${oneLine(pattern).slice(0, 80)}`}
          onClick={() => void askRevoke(grant)}
        >
          Revoke
        </button>
      </div>
      <p class="row small">
        <Badge tone={grant.scope === "always" ? "warn" : "neutral"}>{scopeOf(grant)}</Badge>
        {grant.project !== undefined && <Text class="mono" value={grant.project} />}
        {grant.session_id !== undefined && <Text class="mono" value={grant.session_id} max={20} />}
        <span>
          {uses === 1 ? "1 use" : `${uses} uses`}
          {used_at !== undefined && (
            <>
              , last <Time at={used_at} />
            </>
          )}
        </span>
        {expires_at !== undefined && (
          <span>
            expires <Time at={expires_at} />
          </span>
        )}
      </p>
      <p class="small dim">
        granted <Time at={granted_at} />
        {by !== undefined && (
          <>
            {" "}
            by <Text value={by} max={60} />
          </>
        )}
        {asked && (
          <>
            , asked by <Text value={asked.agent ?? "a client without a name"} max={60} /> for{" "}
            <Text class="mono" value={asked.tool} max={80} /> in <Text class="mono" value={asked.cwd} />
            {asked.words !== undefined && (
              <>
                : “<Text value={asked.words} max={300} />”
              </>
            )}
          </>
        )}
        {tools && (
          <>
            , for the tools <Text class="mono" value={tools.join(", ")} />
          </>
        )}
        {chain && (
          <>
            , through the plugins <Text class="mono" value={chain.join(" → ")} />
          </>
        )}
        , <Text class="mono" value={id} />
      </p>
    </Entry>
  );
}

function scopeOf({ scope, session_id, project }: Grant): string {
  if (session_id !== undefined) return "session";
  return project !== undefined ? "project" : scope;
}

async function askRevoke(grant: Grant): Promise<void> {
  const yes = await confirm({
    title: "Revoke this grant?",
    body: consequence(grant),
    action: grant.action === "allow" ? "Revoke the permission" : "Revoke the refusal",
    danger: true,
  });
  if (yes) await change(() => revoke(grant.id), "The grant is revoked.");
}

/** The consequences of a revocation, as far as they can be known. */
function consequence({ id, category, pattern, action, uses, used_at }: Grant): string {
  const last = used_at === undefined ? "" : `, the last ${ago(new Date(used_at), Date.now())}`;
  const used =
    uses === 0 ? "It has decided nothing yet." : `It has decided ${uses === 1 ? "1 call" : `${uses} calls`}${last}.`;
  const after = action === "allow" ? "You are asked again" : "It is no longer denied: you are asked again";
  const covers = (other: Grant) => [pattern, "*", "**"].includes(other.pattern);
  const others = (permissions.value?.grants ?? []).filter((other) => {
    return other.id !== id && other.category === category && other.action === action && covers(other);
  });
  const still = others.map((other) => `\nThis grant covers the same and stays: ${other.id}`).join("");
  const what = `${action} ${category} ${oneLine(pattern)}`;
  return `${what}\n\n${used}\n${after}, unless another rule or grant decides.${still}`;
}

async function change(work: () => Promise<void>, done: string): Promise<void> {
  try {
    await work();
    toast(done);
  } catch (error) {
    report(error);
  }
  await refresh().catch(report);
}

/** Grants that nobody used for long, and narrow ones that a wider one could replace. */
export function Proposals() {
  const { proposals: all = [], grants = [] } = review.value ?? {};
  const proposals = all.filter((proposal) => !rejected.value.has(JSON.stringify(proposal)));
  if (proposals.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="proposals-title">
      <h2 id="proposals-title">Proposals</h2>
      <ul class="entries" aria-label="Proposals">
        {proposals.map((proposal) => (
          <ProposalRow key={JSON.stringify(proposal)} proposal={proposal} grants={grants} />
        ))}
      </ul>
    </section>
  );
}

function ProposalRow({ proposal, grants }: { proposal: Proposal; grants: readonly Grant[] }) {
  const ids = proposal.type === "drop" ? [proposal.id] : proposal.ids;
  const concerned = grants.filter(({ id }) => ids.includes(id));
  const accept = async () => {
    if (proposal.type === "drop") return change(() => revoke(proposal.id), "The grant is revoked.");
    const yes = await confirm({
      title: "Replace these grants by a wider one?",
      body: `${concerned.map(line).join("\n")}\n\nbecome\n\n${concerned[0]?.category ?? ""} ${oneLine(proposal.pattern)}\n\nIt allows more than they do.`,
      action: "Replace them",
      danger: true,
    });
    if (yes) await change(() => mergeGrants(proposal.ids, proposal.pattern), "The grants are replaced.");
  };
  const reject = () => (rejected.value = new Set([...rejected.value, JSON.stringify(proposal)]));
  return (
    <li>
      <p>
        {proposal.type === "drop" ? (
          <>Revoke what was not used for {proposal.days} days:</>
        ) : (
          <>
            Replace by <Text class="mono" value={proposal.pattern} max={600} />, which allows more than they do:
          </>
        )}
      </p>
      <ul class="parsed-words">
        {concerned.map((grant) => (
          <li key={grant.id}>
            <code>{grant.category}</code> <Text class="mono" value={grant.pattern} max={300} />
          </li>
        ))}
      </ul>
      <div class="buttons">
        <button type="button" onClick={() => void accept()}>
          {proposal.type === "drop" ? "Revoke it" : "Replace them"}
        </button>
        <button type="button" class="plain" onClick={reject}>
          Keep as it is
        </button>
      </div>
    </li>
  );
}

function line({ category, pattern }: Grant): string {
  return `${category} ${oneLine(pattern)}`;
}

/** Permissions that plugins asked for and did not get. */
export function Refusals() {
  if (refusals.value.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="refusals-title">
      <h2 id="refusals-title">Refused to plugins</h2>
      <ul class="entries" aria-label="Refused to plugins">
        {refusals.value.map(({ plugin, category, target, reason, rule, times, last_at, pattern, chain }) => (
          <li key={`${plugin} ${category} ${target} ${chain.join(" ")}`}>
            <p class="row">
              <VerdictBadge verdict="deny" /> <code>{category}</code> <Text class="mono" value={target} max={600} />
            </p>
            <p class="small dim">
              <Text value={plugin} max={60} />, {times === 1 ? "once" : `${times} times`}, last <Time at={last_at} />:{" "}
              <Text value={rule} />
              {reason !== undefined && (
                <>
                  . It says: <Text value={reason} />
                </>
              )}
            </p>
            {pattern !== undefined && (
              <p class="small">
                Allow it:{" "}
                <code>
                  <Text value={grantCommand(category, pattern, chain)} max={600} />
                </code>
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function grantCommand(category: Category, pattern: string, chain: readonly string[]): string {
  const through = chain.flatMap((plugin) => ["--chain", plugin]);
  return commandLine("toolctl", "permissions", "grant", category, pattern, ...through);
}
