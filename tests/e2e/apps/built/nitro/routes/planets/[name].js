export default defineEventHandler((event) => {
  const name = getRouterParam(event, "name");
  if (name !== "earth") throw createError({ statusCode: 404, statusMessage: "no such planet" });
  setCookie(event, "seen", name);
  return { name, days: 365 };
});
