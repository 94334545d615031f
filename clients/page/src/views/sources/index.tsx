/** The view Sources. */
import { Empty } from "../../components.tsx";

export default function SourcesView() {
  return <Empty title="Nothing here yet" />;
}
