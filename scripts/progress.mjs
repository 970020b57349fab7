// Shows on stderr that a long step is under way: on a terminal one line that counts the seconds, elsewhere a new line
// every ten seconds. Plain JavaScript for any Node from 20 up.
const { stderr } = process;
const isTerminal = stderr.isTTY && process.env.TERM !== "dumb";

/** `describe` returns the text of the line. It is called whenever the line is drawn. */
export function startProgress(describe) {
  const startMs = performance.now();
  const elapsed = () => `${Math.round((performance.now() - startMs) / 1000)} s`;
  const clear = () => isTerminal && stderr.write("\r\u001b[K");
  const draw = () => {
    clear();
    stderr.write(`${describe()} … ${elapsed()}${isTerminal ? "" : "\n"}`);
  };
  draw();
  const timer = setInterval(draw, isTerminal ? 200 : 10_000);
  return {
    elapsed,
    /** Output of the step itself. */
    print(text) {
      clear();
      stderr.write(text);
    },
    finish(text) {
      clearInterval(timer);
      clear();
      stderr.write(`${text}\n`);
    },
  };
}
