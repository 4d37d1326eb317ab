// An application of Express in CommonJS.

const express = require("express");
const { addRoutes } = require("./routes.cjs");

const app = express();
addRoutes(app, express.json, () => process.env.ELSEWHERE);
app.listen(process.env.PORT || 3000);
