/** The page's start: the styles, and the frame in the body. */
import { render } from "preact";

import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/components.css";
import { Frame } from "./frame.tsx";
import { finishLogin } from "./login-redirect.ts";
import { startFromLink } from "./sign-in.tsx";
import { applyTheme } from "./theme.ts";

applyTheme();
finishLogin();
render(<Frame />, document.body);
void startFromLink();
// Browsers offer service workers to secure contexts only.
if (import.meta.env.PROD && "serviceWorker" in navigator) void navigator.serviceWorker.register("/page/worker.js");
