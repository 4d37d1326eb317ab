import { useEffect, useState } from "preact/hooks";

/** What the API answers at a path: `undefined` until it is there, then `{ value }` or `{ problem }`. */
export function useAnswer(path) {
  const [answer, setAnswer] = useState();
  useEffect(() => {
    const asking = new AbortController();
    setAnswer(undefined);
    ask(path, asking.signal).then(setAnswer, (error) => asking.signal.aborted || setAnswer({ problem: error.message }));
    return () => asking.abort();
  }, [path]);
  return answer;
}

async function ask(path, signal) {
  const response = await fetch(path, { signal });
  const body = await response.json();
  return response.ok ? { value: body } : { problem: body.error };
}
