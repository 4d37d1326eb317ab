import { data } from "react-router";
import { PLANETS } from "../planets";

export function loader({ params }) {
  const planet = PLANETS.find(({ name }) => name === params.name);
  if (!planet) throw data(null, { status: 404, statusText: "Not Found" });
  return planet;
}

export default function Planet({ loaderData }) {
  return <p>A year has {loaderData.days} days</p>;
}
