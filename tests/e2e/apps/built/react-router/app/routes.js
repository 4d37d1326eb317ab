import { index, route } from "@react-router/dev/routes";

export default [index("routes/home.jsx"), route("planets/:name", "routes/planet.jsx"), route("api/planets", "routes/api.js")];
