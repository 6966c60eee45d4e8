// Builds src/ into the package: one script, one style sheet, the map's script, and the licenses of their parts.
// Each has a digest of the sources, so that a test detects a missing build.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "greenroom", "transports", "web", "console", "static");

/** Returns the digest of all sources, as `tests/web/test_console_build.py` computes it, too. */
function digest() {
  const files = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const hash = createHash("sha256");
  for (const name of [...files, "package.json", "build.mjs"].sort()) {
    hash.update(name).update("\0").update(readFileSync(join(here, name))).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

/** Returns the licenses of the bundled packages. */
function licenses(metafiles) {
  const names = new Set();
  for (const input of metafiles.flatMap((metafile) => Object.keys(metafile.inputs))) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) names.add(found[1]);
  }
  return [...names].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : license;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
}

const banner = `/* greenroom console, built from ${digest()}; with licenses.txt */`;
const entries = ["console.js", "console.css", "map.js"].filter((name) => existsSync(join(here, "src", name)));
const results = [];
for (const name of entries) {
  const result = await build({
    entryPoints: [join(here, "src", name)],
    absWorkingDir: here,
    outfile: join(out, name),
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    banner: { js: banner, css: banner },
    logLevel: "warning",
  });
  results.push(result.metafile);
}
writeFileSync(join(out, "licenses.txt"), licenses(results).join(`\n${"-".repeat(78)}\n\n`));
copyFileSync(join(here, "src", "favicon.svg"), join(out, "favicon.svg"));
