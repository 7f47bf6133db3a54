/**
 * The guard at a resource: pure rules over the stored rows. Read the rows, call the rule, and
 * commit what it returns in ONE transaction with the effect, on condition that the rows are still
 * those that were read. A row that could not be committed means that the verdict was never given.
 *
 * @module
 */

import { bool, object, u64 } from './check.js';
import { core } from './core.js';
import {
  digestText,
  digestWords,
  tokenText,
  tokenWords,
  type Digest,
  type Token,
} from './words.js';

export type { Digest, Token };

/** What a resource keeps for ever. Created explicitly: a missing row is never a new one. */
export interface FenceRow {
  /** Of the last seal; empty: never sealed. */
  readonly token: Token | '';
  /** Closed for good. */
  readonly retired: boolean;
  /** Writes accepted so far. */
  readonly seq: bigint;
}

/** The row of a resource that was created and never sealed. */
export const NEW: FenceRow = { token: '', retired: false, seq: 0n };

/** What a resource keeps of one step, as long as the resource lives. */
export interface StepRow {
  /** What the step did, if its writer said so. */
  readonly opDigest: Digest | undefined;
  /** The number of the write that applied or cancelled it. */
  readonly seq: bigint;
  /** Never applied, and never to be. */
  readonly cancelled: boolean;
}

/**
 * How far above the floor a seal may go: so many terms, or `'proven'`, any distance, for a caller
 * that has read the lease's record and found this token in it.
 */
export type Advance = bigint | 'proven';

/** How far a seal reaches on hearsay. */
export const MAX_ADVANCE = 1_000_000n;

/** A verdict on the floor, and the row to commit; no row: nothing changes. */
export interface Moved<Verdict> {
  readonly verdict: Verdict;
  readonly row: FenceRow | undefined;
}

/** A verdict on a step, and the rows to commit; no rows: nothing changes. */
export interface Wrote<Verdict> extends Moved<Verdict> {
  /** A write without a step stores none. */
  readonly step: StepRow | undefined;
}

interface Fields {
  /** The term of the last seal. */
  readonly floor: bigint;
  /** The floor before; 0: never sealed. */
  readonly prevFloor: bigint;
  /** Writes accepted so far. */
  readonly lastSeq: bigint;
  /** The number of the write. */
  readonly seq: bigint;
  /** The token asking is below the floor: its holder must stop. */
  readonly staleHolder: boolean;
}

/** A verdict's name, then its fields; in the order of the core's. */
type Row = readonly [string, ...(keyof Fields)[]];
type OneOf<Table extends readonly Row[]> = {
  [Index in keyof Table]: Table[Index] extends readonly [
    infer Name extends string,
    ...infer Names extends (keyof Fields)[],
  ]
    ? { readonly name: Name } & Pick<Fields, Names[number]>
    : never;
}[number];

const SEAL = [
  ['NoResource'],
  ['Gone', 'floor'],
  ['ForeignLineage'],
  ['Fenced', 'floor'],
  ['AlreadySealed', 'lastSeq'],
  ['Collision', 'floor'],
  ['Implausible'],
  ['Sealed', 'prevFloor', 'lastSeq'],
] as const satisfies readonly Row[];

const WRITE = [
  ['NoResource'],
  ['NotSealed', 'floor'],
  ['ForeignLineage'],
  ['Cancelled'],
  ['AlreadyApplied', 'seq', 'staleHolder'],
  ['KeyReuse'],
  ['Gone', 'floor'],
  ['Fenced', 'floor'],
  ['Collision', 'floor'],
  ['Full'],
  ['Apply', 'seq'],
] as const satisfies readonly Row[];

const CANCEL = [
  ['NoResource'],
  ['NotSealed', 'floor'],
  ['ForeignLineage'],
  ['Cancelled'],
  ['AlreadyApplied', 'seq', 'staleHolder'],
  ['Gone', 'floor'],
  ['Fenced', 'floor'],
  ['Collision', 'floor'],
  ['Full'],
  ['Tombstoned', 'seq'],
] as const satisfies readonly Row[];

const RETIRE = [
  ['NoResource'],
  ['NotSealed', 'floor'],
  ['ForeignLineage'],
  ['AlreadyRetired'],
  ['Gone', 'floor'],
  ['Fenced', 'floor'],
  ['Collision', 'floor'],
  ['Retired'],
] as const satisfies readonly Row[];

const RECOVER = [
  ['NoResource'],
  ['Gone', 'floor'],
  ['ForeignLineage'],
  ['Kept', 'floor'],
  ['Recovered', 'prevFloor', 'lastSeq'],
] as const satisfies readonly Row[];

const ADOPT = [
  ['NoResource'],
  ['Gone', 'floor'],
  ['Fenced', 'floor'],
  ['AlreadySealed', 'lastSeq'],
  ['Collision', 'floor'],
  ['Adopted', 'prevFloor', 'lastSeq'],
] as const satisfies readonly Row[];

export type SealVerdict = OneOf<typeof SEAL>;
export type WriteVerdict = OneOf<typeof WRITE>;
export type CancelVerdict = OneOf<typeof CANCEL>;
export type RetireVerdict = OneOf<typeof RETIRE>;
export type RecoverVerdict = OneOf<typeof RECOVER>;
export type AdoptVerdict = OneOf<typeof ADOPT>;

/** Raises the floor to `token`. */
export function seal(
  row: FenceRow | undefined,
  token: Token,
  advance: Advance = MAX_ADVANCE,
): Moved<SealVerdict> {
  return moved(SEAL, core.seal(fenceWords(row), tokenWords(token, 'token'), reach(advance)));
}

/** Admits a read that decides something: the first of a holder that has not sealed yet seals. */
export function read(
  row: FenceRow | undefined,
  token: Token,
  advance: Advance = MAX_ADVANCE,
): Moved<SealVerdict> {
  return moved(SEAL, core.read(fenceWords(row), tokenWords(token, 'token'), reach(advance)));
}

/** Admits one write. `known`: the row of its step, if it has one and the step is known. */
export function admit(
  row: FenceRow | undefined,
  known: StepRow | undefined,
  token: Token,
  opDigest?: Digest,
): Wrote<WriteVerdict> {
  const digest = digestWords(opDigest, 'opDigest');
  const answer = core.admit(fenceWords(row), stepWords(known), tokenWords(token, 'token'), digest);
  return wrote(WRITE, answer);
}

/** Writes a step's tombstone, unless it was applied. */
export function cancel(
  row: FenceRow | undefined,
  known: StepRow | undefined,
  token: Token,
): Wrote<CancelVerdict> {
  const answer = core.cancel(fenceWords(row), stepWords(known), tokenWords(token, 'token'));
  return wrote(CANCEL, answer);
}

/** Closes the resource for good. */
export function retire(row: FenceRow | undefined, token: Token): Moved<RetireVerdict> {
  return moved(RETIRE, core.retire(fenceWords(row), tokenWords(token, 'token')));
}

/** Raises the floor of a resource that was restored to the token in the lease's record. */
export function recover(row: FenceRow | undefined, token: Token): Moved<RecoverVerdict> {
  return moved(RECOVER, core.recover(fenceWords(row), tokenWords(token, 'token')));
}

/** Binds the resource to this token's lease, perhaps of another lineage: an operator's word. */
export function adopt(row: FenceRow | undefined, token: Token): Moved<AdoptVerdict> {
  return moved(ADOPT, core.adopt(fenceWords(row), tokenWords(token, 'token')));
}

function reach(advance: Advance): bigint | undefined {
  return advance === 'proven' ? undefined : u64(advance, "advance, if not 'proven',");
}

/** What stands for a token in the row of a resource that was never sealed. */
const UNSEALED = new BigUint64Array(4);

function fenceWords(row: FenceRow | undefined): BigUint64Array {
  if (row === undefined) return new BigUint64Array();
  const { token, retired, seq } = object(row, 'row, if there is one,');
  return BigUint64Array.of(
    ...(token === '' ? UNSEALED : tokenWords(token, 'row.token')),
    BigInt(bool(retired, 'row.retired')),
    u64(seq, 'row.seq'),
  );
}

function stepWords(row: StepRow | undefined): BigUint64Array {
  if (row === undefined) return new BigUint64Array();
  const { opDigest, seq, cancelled } = object(row, 'known, if there is one,');
  return BigUint64Array.of(
    u64(seq, 'known.seq'),
    BigInt(bool(cancelled, 'known.cancelled')),
    ...digestWords(opDigest, 'known.opDigest'),
  );
}

const ROW_AT = 3;
const STEP_AT = ROW_AT + 6;

function moved<const Table extends readonly Row[]>(
  table: Table,
  answer: BigUint64Array,
): Moved<OneOf<Table>> {
  return { verdict: verdict(table, answer), row: fenceRow(answer.subarray(ROW_AT)) };
}

function wrote<const Table extends readonly Row[]>(
  table: Table,
  answer: BigUint64Array,
): Wrote<OneOf<Table>> {
  return { ...moved(table, answer), step: stepRow(answer.subarray(STEP_AT)) };
}

/** The table's row says what the words mean; that they are of that table the types cannot see. */
function verdict<const Table extends readonly Row[]>(
  table: Table,
  [tag, ...values]: BigUint64Array,
): OneOf<Table> {
  const [name, ...fields] = table[Number(tag)];
  const spelled = fields.map((field, at) => {
    return [field, field === 'staleHolder' ? values[at] !== 0n : values[at]];
  });
  return { name, ...Object.fromEntries(spelled) };
}

function fenceRow(words: BigUint64Array): FenceRow | undefined {
  if (words.length === 0) return undefined;
  const [high, low, floor, nonce, retired, seq] = words;
  const token = floor === 0n ? '' : tokenText(high, low, floor, nonce);
  return { token, retired: retired !== 0n, seq };
}

function stepRow(words: BigUint64Array): StepRow | undefined {
  if (words.length === 0) return undefined;
  const [seq, cancelled] = words;
  return { opDigest: digestText(words.subarray(2)), seq, cancelled: cancelled !== 0n };
}
