// Where an application sees something else below onehop than by Node alone, each with its reason; the entries are as
// in differences.mjs.

export const DIFFERENCES = [];
