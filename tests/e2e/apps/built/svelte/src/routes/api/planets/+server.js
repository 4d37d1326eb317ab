import { json } from "@sveltejs/kit";

export const GET = () => json([{ name: "earth" }], { headers: { "X-Planets": "1" } });

export const POST = async ({ request }) => json({ received: await request.json() }, { status: 201 });
