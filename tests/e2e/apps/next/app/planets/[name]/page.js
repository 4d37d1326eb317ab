import { headers } from "next/headers";
import { notFound } from "next/navigation";
import { PLANETS } from "../../../planets";

export async function generateMetadata({ params }) {
  return { title: (await params).name };
}

export default async function Planet({ params, searchParams }) {
  const { name } = await params;
  const { unit = "days" } = await searchParams;
  const visitor = (await headers()).get("x-visitor") ?? "nobody";
  const planet = PLANETS.find((one) => one.name === name);
  if (!planet) notFound();
  return (
    <>
      <h1>{planet.name}</h1>
      <p data-year>
        A year has {unit === "hours" ? planet.days * 24 : planet.days} {unit}; asked by {visitor}.
      </p>
    </>
  );
}
