/** Signing in, the frame, and losing the daemon. */
import { expect, test } from "./fixtures.ts";

test("the page connects, and names its views", async ({ signedIn }) => {
  const views = signedIn.getByRole("navigation", { name: "Views" }).getByRole("link");
  await expect(views).toHaveText(["Now", "Decide", "Tools", "Sources", "Rules", "History"]);
  await signedIn.keyboard.press("g");
  await signedIn.keyboard.press("r");
  await expect(signedIn.getByRole("heading", { level: 1 })).toHaveText("Rules");
  await signedIn.screenshot({ path: "/tmp/frame.png" });
});
