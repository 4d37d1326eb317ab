import { PLANETS } from "../planets";

export const loader = () => Response.json(PLANETS, { headers: { "X-Planets": String(PLANETS.length) } });

export const action = async ({ request }) => Response.json({ received: await request.json() }, { status: 201 });
