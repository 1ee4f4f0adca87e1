// Bundles what the page takes from npm into one script, with its licences beside it. The versions are pinned by
// package-lock.json; the results are part of the repository, so that an installation needs no npm.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const target = new URL("../../pyshardy/report/page/static/", import.meta.url);
const packages = ["@dagrejs/dagre", "@dagrejs/graphlib"];

await build({
  stdin: { contents: 'export { default as dagre } from "@dagrejs/dagre";', resolveDir: "." },
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "vendor",
  target: "es2020",
  legalComments: "none",
  banner: { js: "/* made by tools/page/bundle.mjs; licences in vendor.LICENSES.txt */" },
  outfile: new URL("vendor.js", target).pathname,
});

const texts = packages.map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder)));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), "utf8").trim()}\n`;
});
writeFileSync(new URL("vendor.LICENSES.txt", target), texts.join("\n" + "-".repeat(80) + "\n\n"));
