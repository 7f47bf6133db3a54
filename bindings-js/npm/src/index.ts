export { Config, Elector, type Clocks, type Options, type State } from './elector.js';
export * as fence from './fence.js';
export * as record from './record.js';
export * as timing from './timing.js';
export * as wire from './wire.js';
export type { Digest, Token } from './words.js';
