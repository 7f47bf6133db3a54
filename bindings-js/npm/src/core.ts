// The compiled core, instantiated where this module is first imported: without waiting, so that
// everything built on it can be called at once.

import * as glue from '../generated/leasehold.js';
import { base64 } from '../generated/wasm.js';

export const core = load();

function load(): typeof glue {
  const bytes = Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0));
  glue.initSync({ module: new WebAssembly.Module(bytes) });
  return glue;
}
