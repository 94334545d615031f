/** The view History. */
import { Empty } from "../../components.tsx";

export default function HistoryView() {
  return <Empty title="Nothing here yet" />;
}
