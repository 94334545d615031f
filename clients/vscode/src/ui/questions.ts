/** Questions of tools as quick picks and input boxes, which close when somebody else has answered. */
import type { Answer, Question } from "toold";
import * as vscode from "vscode";

import { answerOf, picks } from "../prompts.js";

export async function answerQuestion(question: Question, over: AbortSignal): Promise<Answer | undefined> {
  const source = new vscode.CancellationTokenSource();
  over.addEventListener("abort", () => source.cancel(), { once: true });
  try {
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
