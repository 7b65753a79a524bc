/** Balance of an account, with what it means if it is below its floor. */
import type { Schemas } from "../../../api/client";
import type { Loaded } from "../../../api/useLoad";
import { formatCount } from "../../../base/text/format";
import { Fact } from "../../../components/Fact";
import { LoadNote } from "../../../components/LoadNote";

/** Properties: the balance, and the calls whose cost is not known exactly if the data plane knows the account. */
export interface BalanceProps {
  balance: Loaded<Schemas["Balance"]>;
  inexact: Schemas["InexactCalls"] | null;
}

/** Renders the balance. */
export function Balance({ balance, inexact }: BalanceProps) {
  const { data } = balance;
  return (
    <>
      {balance.error !== null && <LoadNote loaded={balance} />}
      {data !== null && (
        <dl className="facts panel">
          <Fact name="Balance">{formatCount(data.credits)} credits</Fact>
          <Fact name="Floor">{data.floor === null ? "none: no call is refused" : `${formatCount(data.floor)} credits`}</Fact>
          {inexact !== null && (
            <Fact name="Inexact calls">
              {formatCount(inexact.unpriced)} unpriced, {formatCount(inexact.estimated)} estimated
            </Fact>
          )}
        </dl>
      )}
      {data?.exhausted === true && (
        <p className="note">Calls and new runs of this account are refused, unless they ask a free model. Credits lift that.</p>
      )}
    </>
  );
}
