// The types of keyway.js. What the wire carries is said by Keyway's specification.

/** A JSON value. */
export type Value = null | boolean | number | string | Value[] | { [name: string]: Value }

/** An object's name, such as `Account/1`. */
export type Reference = string

/** An object as the server gives it. */
export interface Row {
  readonly '@ref': Reference
  readonly '@revision': number
  readonly [key: string]: Value
}

/** What a server refused, or why it could not be asked (RFC 9457). */
export class KeywayProblem extends Error {
  /** The status of the answer; 0 where there was none. */
  readonly status: number
  /**
   * Such as `stale-revision`. Where there was no answer: `offline` where the browser has no network, otherwise
   * `unreachable`; `no-token` where the page's `token` failed.
   */
  readonly code: string
  /** A sentence for people. */
  readonly detail: string
  readonly object?: Reference
  readonly keyPath?: string
  /** The place of the operation at fault in a transaction. */
  readonly operation?: number
  readonly requestId?: string
  /** When to ask again, in seconds. */
  readonly retryAfter?: number
}

/** One change of one key path. */
export interface Change {
  readonly object: Reference
  readonly keyPath: string
  readonly kind: 'setting' | 'insertion' | 'removal' | 'replacement'
  /** Places in an ordered to-many, ascending. */
  readonly indexes?: number[]
  readonly old?: Value
  readonly new?: Value
  readonly prior?: true
  /** How many changes were merged into this one. */
  readonly coalesced?: number
}

/** What is told beside a change. */
export interface Telling {
  /** The commit's; of a write that is shown ahead, the last that was told, if any was. */
  readonly revision?: number
  /** Where it is the present state and no change. */
  readonly initial?: true
  /** Who made the commit, as `Keyway-Writer` said. */
  readonly writer?: string
  /** Where an own write is shown ahead of its commit. The commit is not told again, unless another's came before. */
  readonly pending?: true
  /** Where an own write was shown ahead and then refused, with no other's since: what is true is told again. */
  readonly refused?: KeywayProblem
}

/** What could not be bound; also, once, where the page may not have a stream (401): it is told more after a login. */
export interface Unbound {
  readonly problem: KeywayProblem
}

/** What an observation is told: `kind` is absent where the object is gone. */
export type ObservedChange<Context = undefined> = Telling & { readonly context: Context } & (
  | (Change & { readonly gone?: undefined; readonly problem?: undefined })
  | { readonly object: Reference; readonly gone: true; readonly kind?: undefined; readonly problem?: undefined }
) | (Unbound & { readonly kind?: undefined; readonly gone?: undefined })

export interface ObservingOptions<Context> {
  /** `['new', 'initial']` by default. */
  options?: 'none' | 'new' | 'old' | 'initial' | 'prior' | ('new' | 'old' | 'initial' | 'prior')[]
  /** Given back with everything that is told. */
  context?: Context
}

/** What a cell is told, once a commit. */
export interface CellUpdate extends Telling {
  readonly object: Reference
  /** All of what the cell shows, by key path; nothing where the object is gone. */
  readonly values: { readonly [keyPath: string]: Value }
  readonly changes: readonly Change[]
  readonly gone?: true
  readonly problem?: undefined
}

/** A live query. */
export interface QueryDescription {
  entity: string
  /** CEL over the object's keys. */
  filter?: string | null
  /** Key paths by commas; a `-` before one is descending. */
  sort?: string | null
  section?: string | null
  limit?: number | null
  /** What rows have; all keys where it is absent. */
  keys?: string[] | null
  aggregate?: string | null
}

export interface Section {
  readonly name: Value
  readonly count: number
  readonly aggregates?: { readonly [name: string]: Value }
}

/** Rows as they were at one revision, and what the server says of all that match. */
export interface RowList extends Array<Row> {
  readonly revision: number
  readonly total: number
  readonly failed?: number
  readonly sections?: Section[]
  readonly aggregates?: { readonly [name: string]: Value }
}

/** Where a row is: in a query with sections its section's place and its own in that. */
export type Place = number | [number, number]

export type RowChange =
  | { readonly type: 'delete'; readonly object: Reference; readonly index: Place; readonly reason: 'deleted' | 'left' }
  | { readonly type: 'insert'; readonly object: Reference; readonly newIndex: Place; readonly value: Row
      readonly reason: 'created' | 'entered' }
  | { readonly type: 'move' | 'update'; readonly object: Reference; readonly index: Place; readonly newIndex: Place
      readonly keys: string[]; readonly value: Row }

export type SectionChange =
  | { readonly type: 'insert'; readonly name: Value; readonly newIndex: number }
  | { readonly type: 'delete'; readonly name: Value; readonly index: number }

interface QueryTelling extends Telling {
  readonly count: number
  readonly total?: number
  readonly failed?: number
  readonly sections?: Section[]
  readonly aggregates?: { readonly [name: string]: Value }
  readonly problem?: undefined
}

/** What a query is told: its result, and then what becomes of it. */
export type QueryEvent =
  | (QueryTelling & { readonly type: 'results'; readonly objects: Row[] })
  | (QueryTelling & {
      readonly type: 'content'; readonly changes: RowChange[]; readonly sectionChanges?: SectionChange[]
    })
  | (Unbound & { readonly type?: undefined })

/** What is observed until it ends. */
export interface Observation {
  /** From here on its callback does not run. */
  end(): void
}

/** A slot that shows one object at a time. */
export interface Cell extends Observation {
  /** Shows these key paths of an object, or the keys that its entity displays; nothing with null. */
  bind(object: Reference | null, keyPaths?: string | string[]): void
  /** What is out of sight is told nothing, and then what it missed in one update. */
  visible: boolean
}

export interface Query extends Observation {
  /** The result as it is shown, flat, in the order of sections. */
  readonly rows: readonly Row[]
  readonly sections: readonly Section[] | undefined
  readonly count: number
  readonly total?: number
  /** How many objects the filter fails for. */
  readonly failed: number
  readonly aggregates?: { readonly [name: string]: Value }
  /** Changes what is named; null takes it away. */
  change(query: Partial<QueryDescription>): void
  visible: boolean
}

export interface WriteOptions {
  /** An `ETag`, or `etag()`'s promise of one. */
  ifMatch?: string | Promise<string | undefined>
  /** The object is deleted so many seconds after the last write that said so; `none` ends that. */
  lifetime?: number | 'none'
}

/** An operation of a transaction. */
export interface Operation {
  op: 'create' | 'set' | 'patch' | 'insert' | 'remove' | 'replace' | 'delete' | 'willChange' | 'didChange' | 'require'
  object?: Reference
  entity?: string
  keyPath?: string
  key?: string
  value?: Value
  index?: number[]
  revision?: number
  lifetime?: number | 'none'
}

export interface KeywayOptions {
  /** Of the server; the page's own origin by default. */
  url?: string
  /** Gives the token of every request; without it the session's cookie says who asks. Called again after a 401. */
  token?: () => string | undefined | Promise<string | undefined>
}

/** `connecting`, `live`, `waiting` to come back, or `closed`. */
export type State = 'connecting' | 'live' | 'waiting' | 'closed'

/**
 * Why what is observed is told its present state anew: what the server said (`compacted`, `epoch`, `overflow`); `away`
 * after a tab was frozen or kept for Back; `identity` when the token is someone else's.
 */
export interface ResetEvent extends Event {
  readonly reason: 'compacted' | 'epoch' | 'overflow' | 'away' | 'identity'
}

/** Live objects, cells and queries of one server. */
export class Keyway extends EventTarget {
  constructor(options?: KeywayOptions)

  readonly state: State

  get(object: Reference): Promise<Row>
  get(object: Reference, keyPath: string): Promise<Value>
  /** The rows of a query as they are now: all of them, or the first `limit`. Rows of one state, however many pages. */
  list(query: QueryDescription): Promise<RowList>
  /**
   * Shown at once where this page sees the key path with another value, except in observations with `prior`, and taken
   * back if it is refused.
   */
  set(object: Reference, keyPath: string, value: Value, options?: WriteOptions): Promise<Value>
  create(entity: string, value: { [key: string]: Value }, options?: WriteOptions): Promise<Row>
  /** A JSON Merge Patch (RFC 7396). */
  patch(object: Reference, changes: { [key: string]: Value }, options?: WriteOptions): Promise<Row>
  delete(object: Reference, options?: WriteOptions): Promise<void>
  transact(operations: Operation[], options?: WriteOptions):
    Promise<{ revision: number; results: { object: Reference }[] }>

  /** The `ETag` of what this page knows of an object or key path; where it knows nothing, the server's. */
  etag(object: Reference, keyPath?: string): Promise<string | undefined>

  observe(
    object: Reference, keyPaths: string | string[] | null, callback: (change: ObservedChange) => void,
  ): Observation
  observe<Context = undefined>(
    object: Reference, keyPaths: string | string[] | null, options: ObservingOptions<Context>,
    callback: (change: ObservedChange<Context>) => void,
  ): Observation

  cell(callback: (update: CellUpdate | (Unbound & { values?: undefined })) => void): Cell
  query(query: QueryDescription, callback: (event: QueryEvent) => void): Query

  /** Ends all, for good. */
  close(): void

  /** What the elements of a page use. A page whose requests want a token sets it before the first is seen. */
  static shared?: Keyway

  addEventListener(
    type: 'state', listener: (event: Event) => void, options?: boolean | AddEventListenerOptions): void
  addEventListener(
    type: 'reset', listener: (event: ResetEvent) => void, options?: boolean | AddEventListenerOptions): void
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions): void
}
