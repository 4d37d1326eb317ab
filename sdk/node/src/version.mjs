/** The version of this library, as READY says it. */
export const VERSION = '0.1.0';
