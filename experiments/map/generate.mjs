// The points of the map, from a seeded generator: the same on every machine, so that bodies can be compared.

/** How many there are. */
export const POINTS = 100_000;
/** The part of the world that they are spread over, in degrees. */
export const AREA = { swLat: 41, swLng: 1, neLat: 59, neLng: 29 };
/** When the first point changed, and how far apart changes are: Unix time, milliseconds. */
export const FIRST_CHANGE_MS = Date.UTC(2026, 0, 1);
export const CHANGE_EVERY_MS = 1_000;

const SEED = 20_261_128;
const NOTE_CHARACTERS = 462;
/** The number of a change is that of the point times this, modulo POINTS: neighbours in one list are none in the other. */
const STRIDE = 7_919;
const KINDS = ["bench", "bridge", "café", "fountain", "gate", "library", "lookout", "shelter", "spring", "tower"];
const MANNERS = ["Broad", "Clear", "Grüner", "High", "Lower", "Narrow", "Old", "Quiet", "Upper", "White"];
const WORDS = [
  "after", "along", "arch", "beside", "between", "brook", "café", "chestnut", "corner", "crossing", "east", "edge", "evening", "fence",
  "field", "footpath", "garden", "gravel", "harbour", "hedge", "hill", "iron", "lamp", "lane", "level", "market", "meadow", "morning",
  "north", "opening", "orchard", "paved", "path", "pond", "quay", "rail", "river", "rock", "roof", "season", "shade", "slope", "south",
  "square", "stair", "stone", "street", "summer", "sundial", "terrace", "timber", "valley", "view", "wall", "water", "west", "winter",
];

/** mulberry32: numbers from 0 up to 1. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A coordinate with six decimals, the last of which is not 0: every language writes such a number with the same digits. */
function coordinate(random, from, to) {
  const last = 1 + Math.floor(random() * 9);
  return (Math.floor((from + random() * (to - from)) * 1e5) * 10 + last) / 1e6;
}

/** All points, one after the other. */
export function* points() {
  const random = randomNumbers(SEED);
  const one = (list) => list[Math.floor(random() * list.length)];
  for (let id = 1; id <= POINTS; id += 1) {
    const kind = one(KINDS);
    const point = {
      id,
      lat: coordinate(random, AREA.swLat, AREA.neLat),
      lng: coordinate(random, AREA.swLng, AREA.neLng),
      kind,
      name: `${one(MANNERS)} ${kind} ${id}`,
      note: one(WORDS),
      updated: FIRST_CHANGE_MS + ((id * STRIDE) % POINTS) * CHANGE_EVERY_MS,
    };
    while (point.note.length < NOTE_CHARACTERS) point.note += ` ${one(WORDS)}`;
    yield point;
  }
}
