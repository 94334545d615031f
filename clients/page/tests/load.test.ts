/** Many calls at once. */
import { expect, test } from "./fixtures.ts";
import { TRAFFIC } from "./traffic.ts";

test.use({ contents: { plugins: { "traffic.lua": TRAFFIC } } });

test("the page answers keys while 50 calls report their progress", async ({ signedIn, agent }) => {
  const agents = [await agent("claude-code"), await agent("codex")];
  for (let call = 0; call < 50; call += 1) void agents[call % 2]!.call("ticks");
  const cards = signedIn.getByRole("listitem").filter({ hasText: "ticks" });
  await expect(cards).toHaveCount(50);
  await expect(cards.last()).toContainText(/step \d{2}/);
  const times = await signedIn.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        let last = performance.now();
        const frame = (now: number) => {
          times.push(now - last);
          last = now;
          if (times.length < 120) requestAnimationFrame(frame);
          else resolve(times);
        };
        requestAnimationFrame(frame);
      }),
  );
  times.sort((a, b) => a - b);
  const part = (fraction: number) => times[Math.floor(fraction * (times.length - 1))]!.toFixed(1);
  console.log(`50 running calls: a frame takes ${part(0.5)} ms (median), ${part(0.95)} ms (95 %), ${part(1)} ms (longest)`);
  await signedIn.keyboard.press("g");
  await signedIn.keyboard.press("r");
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText("Rules");
});
