import { defineConfig } from "vite";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // Every asset becomes a file of its own with a hash in its name, also small ones.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
