// Numbers as people read them.

const whole = new Intl.NumberFormat("en-US");

/** 12345 -> "12,345" */
export const count = (number) => whole.format(number);

/** A number in at most four characters and a letter: 12345 -> "12.3k" */
export function short(number) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= size * 0.9995) return `${trimmed(number / size)}${letter}`;
  }
  return number >= 10 || Number.isInteger(number) ? String(Math.round(number)) : trimmed(number);
}

function trimmed(number) {
  return String(Number(number.toPrecision(3)));
}

/** Seconds with a unit that suits them: 0.00123 -> "1.23 ms" */
export function time(seconds) {
  if (seconds < 1e-3) return `${trimmed(seconds * 1e6)} µs`;
  if (seconds < 1) return `${trimmed(seconds * 1e3)} ms`;
  return `${trimmed(seconds)} s`;
}

export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(number, 1)) / 3));
  return `${trimmed(number / 1000 ** unit)} ${units[unit]}`;
}

/** "one row", "3 rows" */
export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}
