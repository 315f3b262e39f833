// The types of keyway.js. Keyway's specification describes the protocol.

/** A JSON value. */
export type Value = null | boolean | number | string | Value[] | { [name: string]: Value }

/** An object's name, such as `Account/1`. */
export type Reference = string

/** An object as the server returns it. */
export interface Row {
  readonly '@ref': Reference
  readonly '@revision': number
  readonly [key: string]: Value
}

/** The reason why the server refused a request (RFC 9457), or why there was no response. */
export class KeywayProblem extends Error {
  /** The status of the response; 0 if there was none. */
  readonly status: number
  /**
   * The code of the problem, such as `stale-revision`. Without a response: `no-token` if the page's `token` failed,
   * `offline` if the browser has no network, otherwise `unreachable`.
   */
  readonly code: string
  /** A sentence for people. */
  readonly detail: string
  readonly object?: Reference
  readonly keyPath?: string
  /** The index of the failed operation in a transaction. */
  readonly operation?: number
  readonly requestId?: string
  /** The delay before a retry, in seconds. */
  readonly retryAfter?: number
}

/** One change of one key path. */
export interface Change {
  readonly object: Reference
  readonly keyPath: string
  readonly kind: 'setting' | 'insertion' | 'removal' | 'replacement'
  /** Indexes in an ordered to-many, ascending. */
  readonly indexes?: number[]
  readonly old?: Value
  readonly new?: Value
  readonly prior?: true
  /** The number of changes that were merged into this one. */
  readonly coalesced?: number
}

/** The members that every notification has. */
export interface Telling {
  /** The commit's revision; for a write that is shown before its commit, the last known one, if any. */
  readonly revision?: number
  /** True if this is the present state and not a change. */
  readonly initial?: true
  /** The writer of the commit, as given by `Keyway-Writer`. */
  readonly writer?: string
  /**
   * True if a write of this page is shown before its commit. The commit is not notified again, unless another client's
   * came first.
   */
  readonly pending?: true
  /**
   * The problem of a write of this page that was shown before its commit and then refused, if no other client's came
   * since. The change has the actual value again.
   */
  readonly refused?: KeywayProblem
}

/**
 * A notification that something could not be bound; also, once, that the page may not have a stream (401). More
 * notifications follow after a login.
 */
export interface Unbound {
  readonly problem: KeywayProblem
}

/** A notification of an observation; `kind` is absent if the object is gone. */
export type ObservedChange<Context = undefined> = Telling & { readonly context: Context } & (
  | (Change & { readonly gone?: undefined; readonly problem?: undefined })
  | { readonly object: Reference; readonly gone: true; readonly kind?: undefined; readonly problem?: undefined }
) | (Unbound & { readonly kind?: undefined; readonly gone?: undefined })

export interface ObservingOptions<Context> {
  /** `['new', 'initial']` by default. */
  options?: 'none' | 'new' | 'old' | 'initial' | 'prior' | ('new' | 'old' | 'initial' | 'prior')[]
  /** Returned with every notification. */
  context?: Context
}

/** A notification of a cell, once per commit. */
export interface CellUpdate extends Telling {
  readonly object: Reference
  /** All values that the cell shows, by key path; empty if the object is gone. */
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
  /** Key paths separated by commas; a `-` before one makes it descending. */
  sort?: string | null
  section?: string | null
  limit?: number | null
  /** The keys of the rows; all keys if it is absent. */
  keys?: string[] | null
  aggregate?: string | null
}

export interface Section {
  readonly name: Value
  readonly count: number
  readonly aggregates?: { readonly [name: string]: Value }
}

/** Rows as they were at one revision, with the server's figures for all that match. */
export interface RowList extends Array<Row> {
  readonly revision: number
  readonly total: number
  readonly failed?: number
  readonly sections?: Section[]
  readonly aggregates?: { readonly [name: string]: Value }
}

/** A row's index; in a query with sections, the index of its section and its own within that. */
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

/** A notification of a query: first its result, then the changes of it. */
export type QueryEvent =
  | (QueryTelling & { readonly type: 'results'; readonly objects: Row[] })
  | (QueryTelling & {
      readonly type: 'content'; readonly changes: RowChange[]; readonly sectionChanges?: SectionChange[]
    })
  | (Unbound & { readonly type?: undefined })

/** An observation, until it ends. */
export interface Observation {
  /** Ends the observation. Its callback does not run any more. */
  end(): void
}

/** A slot that shows one object at a time. */
export interface Cell extends Observation {
  /** Shows these key paths of an object, or the keys that its entity displays; nothing with null. */
  bind(object: Reference | null, keyPaths?: string | string[]): void
  /** False while it is out of sight: it is not notified, and afterwards receives what it missed in one update. */
  visible: boolean
}

export interface Query extends Observation {
  /** The rows as they are shown, of all sections in order. */
  readonly rows: readonly Row[]
  readonly sections: readonly Section[] | undefined
  readonly count: number
  readonly total?: number
  /** The number of objects for which the filter fails. */
  readonly failed: number
  readonly aggregates?: { readonly [name: string]: Value }
  /** Changes the named members of the query; null removes one. */
  change(query: Partial<QueryDescription>): void
  visible: boolean
}

export interface WriteOptions {
  /** An `ETag`, or the promise of one that `etag()` returns. */
  ifMatch?: string | Promise<string | undefined>
  /** The seconds after the last write with a lifetime at which the object is deleted; `none` ends that. */
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
  /** The server's URL; the page's own origin by default. */
  url?: string
  /**
   * Returns the token for every request; without it, the session's cookie identifies the user. Called again after a
   * 401.
   */
  token?: () => string | undefined | Promise<string | undefined>
}

/** `connecting`, `live`, `waiting` to reconnect, or `closed`. */
export type State = 'connecting' | 'live' | 'waiting' | 'closed'

/**
 * The reason why observations receive their present state again: the server's reason (`compacted`, `epoch`,
 * `overflow`); `away` after a tab was frozen or kept for Back; `identity` if the
 * token is another user's or the session has ended.
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
  /**
   * Returns the rows of a query as they are now: all of them, or the first `limit`. All rows are of one state, however
   * many pages there are.
   */
  list(query: QueryDescription): Promise<RowList>
  /**
   * Sets a value. It is shown at once where this page shows another value of the key path, except in observations with
   * `prior`, and reverted if it is refused.
   */
  set(object: Reference, keyPath: string, value: Value, options?: WriteOptions): Promise<Value>
  create(entity: string, value: { [key: string]: Value }, options?: WriteOptions): Promise<Row>
  /** Applies a JSON Merge Patch (RFC 7396). */
  patch(object: Reference, changes: { [key: string]: Value }, options?: WriteOptions): Promise<Row>
  delete(object: Reference, options?: WriteOptions): Promise<void>
  transact(operations: Operation[], options?: WriteOptions):
    Promise<{ revision: number; results: { object: Reference }[] }>

  /** Returns the `ETag` of an object or key path as this page knows it; if it does not know it, the server's. */
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

  /** Ends everything, permanently. */
  close(): void

  /** The client of the page's elements. A page that needs a token sets it before the first element is seen. */
  static shared?: Keyway

  addEventListener(
    type: 'state', listener: (event: Event) => void, options?: boolean | AddEventListenerOptions): void
  addEventListener(
    type: 'reset', listener: (event: ResetEvent) => void, options?: boolean | AddEventListenerOptions): void
  addEventListener(
    type: string, listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions): void
}
