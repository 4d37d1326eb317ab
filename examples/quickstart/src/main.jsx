import { ErrorBoundary, lazy, LocationProvider, Route, Router, useLocation } from "preact-iso";
import { render } from "preact";
import Home from "./pages/Home.jsx";
import NotFound from "./pages/NotFound.jsx";
import "./style.css";

// Pages behind a click are chunks of their own: a visitor of the first page never fetches them.
const Items = lazy(() => import("./pages/Items.jsx"));
const Item = lazy(() => import("./pages/Item.jsx"));
const About = lazy(() => import("./pages/About.jsx"));

function Navigation() {
  const { path } = useLocation();
  const link = (href, text) => {
    const here = href === "/" ? path === "/" : path.startsWith(href);
    return (
      <a href={href} aria-current={here ? "page" : undefined}>
        {text}
      </a>
    );
  };
  return (
    <header class="bar">
      <a class="brand" href="/">
        <img src="/favicon.svg" alt="" width="28" height="28" />
        onehop
      </a>
      <nav aria-label="Main">
        {link("/", "Start")}
        {link("/items", "Field guide")}
        {link("/about", "About")}
      </nav>
    </header>
  );
}

function App() {
  return (
    <LocationProvider>
      <a class="skip" href="#content">Skip to content</a>
      <Navigation />
      <main id="content">
        <ErrorBoundary>
          <Router>
            <Route path="/" component={Home} />
            <Route path="/items" component={Items} />
            <Route path="/items/:id" component={Item} />
            <Route path="/about" component={About} />
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
      <footer>
        Served from memory by onehop. The source of this page is <code>examples/quickstart</code>.
      </footer>
    </LocationProvider>
  );
}

render(<App />, document.getElementById("app"));
