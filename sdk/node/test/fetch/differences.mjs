// What may differ between the platform's objects and ours, and why. Each entry must be needed where it applies.

const bun = () => process.versions.bun !== undefined;
const node = () => !bun();

/** @type {{ where: () => boolean, what: RegExp, why: string }[]} */
export const differences = [];
