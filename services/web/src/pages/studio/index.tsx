/** Place of the Studio, which configures agents on gateways. */
import { Link } from "../../app/router";
import { EmptyState } from "../../components/EmptyState";

/** Says what will be here. */
export default function Studio() {
  return (
    <>
      <div className="page-head">
        <h1>Studio</h1>
      </div>
      <EmptyState title="Agents of gateways are configured here later">
        Until then the configuration file has their settings, and <Link to="/gateways">Gateways</Link> says what a gateway lacks.
      </EmptyState>
    </>
  );
}
