// The same application in ES modules.

import express from "express";
import { addRoutes } from "./routes.cjs";

const app = express();
addRoutes(app, express.json, () => process.env.ELSEWHERE);
app.listen(process.env.PORT || 3000);
