export default defineEventHandler(() => "<!doctype html><title>Planets</title><h1>Planets</h1>\n");
