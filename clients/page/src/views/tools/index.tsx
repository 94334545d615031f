/** The view Tools. */
import { Empty } from "../../components.tsx";

export default function ToolsView() {
  return <Empty title="Nothing here yet" />;
}
