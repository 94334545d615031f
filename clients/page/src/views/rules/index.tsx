/** The view Rules. */
import { Empty } from "../../components.tsx";

export default function RulesView() {
  return <Empty title="Nothing here yet" />;
}
