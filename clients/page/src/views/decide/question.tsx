/** A question of a tool: options, free text, or a form. */
import { useState } from "preact/hooks";
import type { Question, QuestionsReplyParams } from "toold/browser";

import { Badge } from "../../components.tsx";
import { Key, useKeys, type KeyBinding } from "../../keys.tsx";
import { Block, Text } from "../../text.tsx";
import { useAnswer } from "./answer.ts";
import { Asking } from "./asking.tsx";
import { Expiry } from "./expiry.tsx";
import { QuestionForm } from "./question-form.tsx";

export function QuestionPrompt({ question }: { question: Question }) {
  const { ready, answer } = useAnswer(question.request_id);
  const reply = (params: Omit<QuestionsReplyParams, "request_id">) =>
    void answer("questions.reply", { request_id: question.request_id, ...params });
  return (
    <article class="prompt card" aria-labelledby="question-title">
      <header class="row">
        <h2 id="question-title">
          {question.tool === undefined ? "A tool" : <Text class="mono" value={question.tool} />} asks
        </h2>
        {question.multiple && <Badge>choose any number</Badge>}
        <Expiry at={question.expires_at} />
      </header>
      <Block value={question.question} class="target" label="Question" />
      <dl class="facts">
        <dt>agent</dt>
        <dd>
          <strong>
            <Asking prompt={question} />
          </strong>{" "}
          <span class="dim small">
            session <Text value={question.session_id} />
          </span>
        </dd>
        {question.cwd !== undefined && (
          <>
            <dt>folder</dt>
            <dd class="mono">
              <Text value={question.cwd} />
            </dd>
          </>
        )}
      </dl>
      {question.schema !== undefined ? (
        <QuestionForm schema={question.schema} ready={ready} onReply={reply} />
      ) : (
        <Options question={question} ready={ready} onReply={reply} />
      )}
    </article>
  );
}

interface OptionsProps {
  question: Question;
  ready: boolean;
  onReply: (params: Omit<QuestionsReplyParams, "request_id">) => void;
}

function Options({ question, ready, onReply }: OptionsProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const takesText = question.allow_other || question.options.length === 0;
  const [writing, setWriting] = useState(question.options.length === 0);
  const [words, setWords] = useState("");
  const choose = (id: string) => {
    if (!question.multiple) return onReply({ answer_ids: [id] });
    setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  };
  // In the order of the question.
  const inOrder = () => question.options.map(({ id }) => id).filter((id) => chosen.includes(id));
  const send = () => {
    if (!writing) return onReply({ answer_ids: inOrder() });
    onReply({ answer: words, answer_ids: chosen.length > 0 ? inOrder() : undefined });
  };
  const keys: KeyBinding[] = question.options
    .slice(0, 9)
    .map(({ id, label }, at) => ({ key: String(at + 1), label, run: () => choose(id) }));
  if (question.multiple) keys.push({ key: "Enter", label: "send the chosen options", run: send });
  if (takesText) keys.push({ key: "o", label: "answer in your own words", run: () => setWriting(true) });
  keys.push({ key: "n", label: "do not answer", run: () => onReply({ cancelled: true }) });
  useKeys(keys);
  return (
    <>
      <div class="choices" role="group" aria-label="Answers">
        {question.options.map(({ id, label, description }, at) => (
          <button
            key={id}
            type="button"
            disabled={!ready}
            aria-pressed={question.multiple ? chosen.includes(id) : undefined}
            onClick={() => choose(id)}
          >
            {at < 9 && <Key name={String(at + 1)} />}
            <span>
              <Text value={label} />
              {description !== undefined && (
                <span class="dim small">
                  {" "}
                  <Text value={description} />
                </span>
              )}
            </span>
          </button>
        ))}
        {takesText && !writing && (
          <button type="button" disabled={!ready} onClick={() => setWriting(true)}>
            <Key name="o" /> answer in your own words
          </button>
        )}
        {question.multiple && (
          <button type="button" class="primary" disabled={!ready} onClick={send}>
            <Key name="Enter" /> send
          </button>
        )}
        <button type="button" class="danger" disabled={!ready} onClick={() => onReply({ cancelled: true })}>
          <Key name="n" /> do not answer
        </button>
      </div>
      {writing && (
        <form
          class="refusal"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <label>
            Your answer
            <textarea rows={3} required value={words} onInput={(event) => setWords(event.currentTarget.value)} />
          </label>
          <div class="buttons">
            <button type="submit" class="primary" disabled={!ready}>
              Send
            </button>
          </div>
        </form>
      )}
    </>
  );
}
