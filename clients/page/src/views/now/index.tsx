/** The view Now. */
import { Empty } from "../../components.tsx";

export default function NowView() {
  return <Empty title="Nothing here yet" />;
}
