import { render } from "preact";
import { App } from "./app.jsx";
import { takeToken } from "./token.js";
import "./style/base.css";
import "./style/parts.css";

takeToken();
render(<App />, document.querySelector("#page"));
