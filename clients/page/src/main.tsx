/** The page's start: the styles, and the frame in the body. */
import { render } from "preact";

import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/components.css";
import { start } from "./daemon.ts";
import { Frame } from "./frame.tsx";
import { openLink } from "./sign-in.tsx";
import { applyTheme } from "./theme.ts";

applyTheme();
render(<Frame />, document.body);
void openLink().then(start);
// Browsers offer service workers to secure contexts only.
if (import.meta.env.PROD && "serviceWorker" in navigator) void navigator.serviceWorker.register("/page/worker.js");
