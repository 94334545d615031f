/** Questions of tools as quick picks, input boxes and forms, which close when another client answers. */
import type { Answer, Question } from "toold";
import * as vscode from "vscode";

import { argumentsOf, fieldsOf } from "../form.js";
import { answerOf, picks } from "../prompts.js";
import { fillIn } from "./form.js";
import { information } from "./messages.js";

export async function answerQuestion(question: Question, over: AbortSignal): Promise<Answer | undefined> {
  const source = new vscode.CancellationTokenSource();
  const ended = () => {
    source.cancel();
    // How another client answered it, if the daemon said so.
    if (typeof over.reason === "string") {
      void information(`${over.reason}: ${question.question}`);
    }
  };
  over.addEventListener("abort", ended, { once: true });
  try {
    if (question.schema !== undefined) {
      const fields = fieldsOf(question.schema);
      const typed = await fillIn(fields, { title: question.question, submit: "Send", token: source.token });
      return typed instanceof Map ? { content: argumentsOf(fields, typed) } : { cancelled: true };
    }
    const options = picks(question);
    if (options.length > 0) {
      const answer = answerOf(await choose(question, options, source.token));
      if (answer !== "words") return answer;
    }
    const asked = { title: question.question, ignoreFocusOut: true };
    const words = await vscode.window.showInputBox(asked, source.token);
    return words === undefined ? { cancelled: true } : { answer: words };
  } finally {
    source.dispose();
  }
}

async function choose<P extends vscode.QuickPickItem>(
  question: Question,
  options: P[],
  token: vscode.CancellationToken,
): Promise<P[] | undefined> {
  const asked = { title: question.question, ignoreFocusOut: true };
  if (question.multiple) return vscode.window.showQuickPick(options, { ...asked, canPickMany: true }, token);
  const chosen = await vscode.window.showQuickPick(options, asked, token);
  return chosen && [chosen];
}
