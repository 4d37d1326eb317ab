export const PLANETS = [
  { name: "earth", days: 365 },
  { name: "mars", days: 687 },
];
