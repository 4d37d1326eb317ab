import { error } from "@sveltejs/kit";

const PLANETS = [
  { name: "earth", days: 365 },
  { name: "mars", days: 687 },
];

export function load({ params }) {
  return PLANETS.find(({ name }) => name === params.name) ?? error(404, "no such planet");
}
