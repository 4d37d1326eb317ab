export const actions = {
  default: async ({ request, cookies }) => {
    const name = String((await request.formData()).get("name"));
    cookies.set("last", name, { path: "/" });
    return { greeting: `Good day, ${name}.` };
  },
};
