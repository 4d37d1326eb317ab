"use server";

import { cookies } from "next/headers";

export async function greet(_before, form) {
  const name = String(form.get("name"));
  (await cookies()).set("last", name);
  return { text: `Good day, ${name}.` };
}
