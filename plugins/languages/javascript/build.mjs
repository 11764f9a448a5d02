// node build.mjs SOURCE WIT OUT: a component of a JavaScript file, with no feature of the runtime that imports WASI.
import { componentize } from "@bytecodealliance/componentize-js";
import { writeFile } from "node:fs/promises";

const [sourcePath, witPath, out] = process.argv.slice(2);
const { component } = await componentize({
  sourcePath,
  witPath,
  worldName: "provider",
  disableFeatures: ["random", "stdio", "clocks", "http", "fetch-event"],
});
await writeFile(out, component);
