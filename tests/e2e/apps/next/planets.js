export const PLANETS = [
  { name: "mercury", days: 88 },
  { name: "earth", days: 365 },
  { name: "mars", days: 687 },
];
