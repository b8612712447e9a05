// Things that are asked for again and again, while somebody looks.

/** Calls an asynchronous function now and so many seconds after each time, or as many as it gives; gives what stops it. */
export function every(seconds, run) {
  let timer = null;
  let busy = false;
  let stopped = false;
  async function turn() {
    timer = null;
    if (document.hidden || busy || stopped) return;
    busy = true;
    let pause = seconds;
    try {
      pause = (await run()) ?? seconds;
    } finally {
      busy = false;
    }
    if (!stopped) timer = setTimeout(turn, pause * 1000);
  }
  function wake() {
    if (timer === null) turn();
  }
  document.addEventListener("visibilitychange", wake);
  turn();
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", wake);
  };
}
