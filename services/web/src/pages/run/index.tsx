/** One run. */

/** Shows one run. */
export default function Run() {
  return <h1>Run</h1>;
}
