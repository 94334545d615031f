/** The view Decide. */
import { Empty } from "../../components.tsx";

export default function DecideView() {
  return <Empty title="Nothing here yet" />;
}
