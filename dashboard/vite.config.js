import { defineConfig } from "vite";

// Where the API is while one develops: the mock server, or a real onehop's dashboard address.
const api = process.env.ONEHOP ?? "http://127.0.0.1:5199";
const paths = ["/status", "/certificates", "/history", "/events", "/slow", "/frequent", "/live", "/restart", "/workers", "/reload"];

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { proxy: Object.fromEntries(paths.map((path) => [path, api])) },
  build: {
    // The policy of the page allows no `data:` address, and the server embeds files by fixed names.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: { entryFileNames: "assets/dashboard.js", assetFileNames: "assets/dashboard[extname]" },
    },
  },
});
