// The grid over the map: each point is in a cell, cells of one row have numbers that follow each other.

const CELLS_PER_DEGREE = 2;
/** More than there are in a row, and easy to read. */
const ROW = 1_000;

const row = (lat) => Math.floor((Math.min(Math.max(lat, -90), 90) + 90) * CELLS_PER_DEGREE);
const column = (lng) => Math.floor((Math.min(Math.max(lng, -180), 180) + 180) * CELLS_PER_DEGREE);

/** The number of the cell that a point is in. */
export function cellOf({ lat, lng }) {
  return row(lat) * ROW + column(lng);
}

/** The first and the last cell of each row that a view touches. */
export function bands({ swLat, swLng, neLat, neLng }) {
  const count = Math.max(row(neLat) - row(swLat) + 1, 0);
  return Array.from({ length: count }, (_, index) => {
    const start = (row(swLat) + index) * ROW;
    return [start + column(swLng), start + column(neLng)];
  });
}
