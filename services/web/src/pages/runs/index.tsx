/** List of runs. */

/** Shows the runs. */
export default function Runs() {
  return <h1>Runs</h1>;
}
