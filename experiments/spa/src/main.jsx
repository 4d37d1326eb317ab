import { render } from "preact";
import { ErrorBoundary, lazy, LocationProvider, Route, Router } from "preact-iso";
import List from "./List.jsx";
import mark from "./mark.svg";
import "./style.css";

// What is behind a click is a chunk of its own: the first page does not fetch it.
const Code = lazy(() => import("./Code.jsx"));

function Missing() {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <a href="/">All status codes</a>
      </p>
    </>
  );
}

function App() {
  return (
    <LocationProvider>
      <header>
        <img src={mark} alt="" width="32" height="32" />
        <a href="/">Status codes</a>
      </header>
      <main>
        <ErrorBoundary>
          <Router>
            <Route path="/" component={List} />
            <Route path="/codes/:code" component={Code} />
            <Route default component={Missing} />
          </Router>
        </ErrorBoundary>
      </main>
    </LocationProvider>
  );
}

render(<App />, document.getElementById("app"));
