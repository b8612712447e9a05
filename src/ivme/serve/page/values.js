// Values of columns: how they are shown, and which one comes first.

const NUMBERS = /^(int|float|decimal)/;

/** Whether a column has numbers: by its type, or without one by its values. */
export function isNumeric(type, values = []) {
  if (type) return NUMBERS.test(type);
  const known = values.filter((value) => value !== null);
  return known.length > 0 && known.every((value) => typeof value === "number");
}

/** A value as one text; arrays and structs as JSON. */
export function shownValue(value) {
  if (value === null) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Which of two values comes first: below 0 for the first; NULL comes last. */
export function compare(one, other, numeric) {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  if (numeric) return compareNumbers(one, other);
  return shownValue(one) < shownValue(other) ? -1 : Number(shownValue(one) > shownValue(other));
}

/** Integers that a number cannot hold are texts of digits. */
function compareNumbers(one, other) {
  if (Number(one) !== Number(other) || !/^-?\d+$/.test(one) || !/^-?\d+$/.test(other)) return Number(one) - Number(other);
  const difference = BigInt(one) - BigInt(other);
  return difference < 0n ? -1 : Number(difference > 0n);
}
