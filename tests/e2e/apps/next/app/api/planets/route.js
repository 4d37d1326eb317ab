import { PLANETS } from "../../../planets";

export const dynamic = "force-dynamic";

export function GET(request) {
  const least = Number(new URL(request.url).searchParams.get("least") ?? 0);
  return Response.json(
    PLANETS.filter(({ days }) => days >= least),
    { headers: { "X-Planets": String(PLANETS.length) } },
  );
}

export async function POST(request) {
  const planet = await request.json().catch(() => null);
  if (typeof planet?.name !== "string") return Response.json({ error: "a name is missing" }, { status: 422 });
  const answer = Response.json({ received: planet }, { status: 201 });
  answer.headers.append("Set-Cookie", "first=1; Path=/");
  answer.headers.append("Set-Cookie", "second=2; Path=/; HttpOnly");
  return answer;
}
