/** Configures the build: nothing inline, names by content, and a proxy to a running `sluice up` while developing. */
import { defineConfig } from "vite";

const server = process.env["SLUICE_API"] ?? "http://127.0.0.1:4180";
const proxied = { target: server, changeOrigin: true, headers: { origin: server } };

export default defineConfig({
  build: {
    assetsInlineLimit: 0,
    emptyOutDir: false,
    manifest: true,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: "es2023",
  },
  server: { proxy: { "/api": proxied, "/readyz": proxied } },
});
