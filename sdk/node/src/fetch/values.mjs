// The values of fields: what is one, what the platform keeps of it, and what cannot be sent though the platform allows
// it. Knows nothing of objects.

/** What is not in nearly every value: beyond a byte, or a control character. */
const UNUSUAL_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Fetch standard, "header value": no NUL, CR or LF; nothing beyond a byte. */
const BAD_VALUE = /[\0\r\n\u0100-\uffff]/;

/** RFC 9110 section 5.5 knows no such value, and the worker protocol carries none; the fetch standard allows it. */
const CONTROL = /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]/;

/** True once any value with a control character was seen: only then is a block searched for one. */
let mayHaveControls = false;

/** HTTP whitespace at either end, which the standard takes off. */
const BLANK_ENDS = /^[\t\n\r ]+|[\t\n\r ]+$/g;

/** Highest character that BLANK_ENDS takes off. */
const BLANK_MAX = 0x20;

/**
 * A value as the platform would keep it, undefined where the platform has to decide.
 * @param {unknown} value
 * @returns {string | undefined}
 */
export function plainValue(value) {
  if (typeof value !== 'string') return undefined;
  const length = value.length;
  if (length > 0 && (value.charCodeAt(0) <= BLANK_MAX || value.charCodeAt(length - 1) <= BLANK_MAX)) {
    value = value.replace(BLANK_ENDS, '');
  }
  const text = /** @type {string} */ (value);
  return UNUSUAL_VALUE.test(text) ? unusualValue(text) : text;
}

/** @param {string} value */
function unusualValue(value) {
  if (BAD_VALUE.test(value)) return undefined;
  mayHaveControls = true;
  return value;
}

/**
 * Notes a value that the platform has kept.
 * @param {string} value
 */
export function note(value) {
  mayHaveControls ||= CONTROL.test(value);
}

/**
 * True where a block holds a character that cannot be sent: the server would give the whole worker up.
 * @param {string} block
 */
export function hasControls(block) {
  return mayHaveControls && CONTROL.test(block);
}
