// Lets a person sign in with a token, chat with an agent, and sign out. The address names the thread and the agent:
// `?thread=KEY&agent=ID`.
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { currentSession, signIn, signOut, storedMessages } from "./api.js";
import { Chat } from "./chat.jsx";

const asked = new URLSearchParams(location.search);
const thread = asked.get("thread");
const agent = asked.get("agent");

// Returns what to show: the form, or the chat with the messages that the thread has.
async function load() {
  const session = await currentSession();
  return { session, stored: session && (await storedMessages(thread)) };
}

function Page() {
  const [shown, setShown] = useState(null);
  const [problem, setProblem] = useState(null);

  const reload = () => load().then(setShown, setProblem);
  const after = (action) => action.then(() => setProblem(null)).then(reload, setProblem);
  useEffect(() => void reload(), []);

  return (
    <>
      {problem && <p role="alert">{problem.message}</p>}
      {shown && !shown.session && <SignIn enter={(token) => after(signIn(token))} />}
      {shown?.session && (
        <>
          <p id="principal">{shown.session.principal}</p>
          <button id="leave" onClick={() => after(signOut())}>Sign out</button>
          <Chat thread={thread} agent={agent} stored={shown.stored} />
        </>
      )}
    </>
  );
}

// Holds the token no longer than the request takes.
function SignIn({ enter }) {
  function submit(event) {
    event.preventDefault();
    enter(new FormData(event.target).get("token"));
    event.target.reset();
  }
  return (
    <form id="sign-in" onSubmit={submit}>
      <input name="token" type="password" aria-label="Token" autoComplete="off" required />
      <button>Sign in</button>
    </form>
  );
}

createRoot(document.getElementById("app")).render(<Page />);
