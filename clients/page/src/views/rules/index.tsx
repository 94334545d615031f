/** The view Rules: what tools may do, where each rule comes from, and what would happen to a call. */
import { useEffect } from "preact/hooks";

import { GrantList, Proposals, Refusals } from "./grant-list.tsx";
import { Modes } from "./modes.tsx";
import { followPermissions } from "./permissions.ts";
import { ProgramCode } from "./program-code.tsx";
import { RuleList } from "./rule-list.tsx";
import { Suggestions } from "./suggestions.tsx";
import { Tester } from "./tester.tsx";
import "./rules.css";

export default function RulesView() {
  useEffect(followPermissions, []);
  return (
    <div class="rules">
      <Tester />
      <div class="rules-lists">
        <RuleList />
        <div class="stack">
          <Suggestions />
          <Proposals />
          <GrantList />
          <Refusals />
          <Modes />
          <ProgramCode />
        </div>
      </div>
    </div>
  );
}
