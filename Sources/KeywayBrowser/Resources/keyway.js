// Types: keyway.d.ts. Line (the stream) and Desk (the observations) are state machines; Keyway has the browser.

export class KeywayProblem extends Error {
  constructor({ status = 0, type = '', code = type.split('/').pop() || 'unreachable', title, detail, cause, ...rest }) {
    super(detail ?? title ?? code, { cause })
    Object.assign(this, rest, { name: 'KeywayProblem', status, code, detail: this.message })
  }
}

const isTransient = ({ status, code }) =>
  (status >= 500 || [0, 401, 408, 425, 429].includes(status)) && code !== 'too-many-cells'

const backoff = (failures, { retryAfter = 0 } = {}) =>
  Math.max(retryAfter * 1000, Math.min(30_000, 250 * 2 ** failures) * (0.5 + Math.random() / 2))

const revisionOf = id => Number(id?.slice(id.lastIndexOf('-') + 1) ?? -1)

const epochOf = id => id?.slice(0, id.lastIndexOf('-'))

const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b)

const isOfKey = (a, b) => a.object === b.object && a.keyPath === b.keyPath

/** An event's `id` is that of its own block. */
export class EventStreamParser {
  #decoder = new TextDecoder()
  #rest = ''
  #isAfterCR = false
  #event = {}

  push(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true })
    const events = []
    if (!text) return events
    if (this.#isAfterCR && text[0] === '\n') text = text.slice(1)
    this.#isAfterCR = text.endsWith('\r')
    const lines = text.split(/\r\n|\r|\n/)
    lines[0] = this.#rest + lines[0]
    this.#rest = lines.pop()
    for (const line of lines) {
      const event = this.#event
      const [, field, value] = /^([^:]*):? ?([^]*)$/.exec(line)
      if (field === 'data') event.data = 'data' in event ? event.data + '\n' + value : value
      else if (field === 'event') event.type = value
      else if (field === 'id' && !value.includes('\0')) event.id = value
      if (line) continue
      if ('data' in event) events.push({ ...event, type: event.type || 'message' })
      this.#event = {}
    }
    return events
  }
}

/**
 * `step` takes an event and returns actions; `deadline` is the time of the next `tick`. Each binding has its own name.
 * The page has the state of a told cell at `id`: the next stream continues there.
 */
export class Line {
  state = 'connecting'
  heartbeat = 15
  stream
  #cells = new Map()
  #dirty = new Set()
  #batches = []
  #inFlight
  #flushAt = Infinity
  #attempt = 0
  #failures = 0
  #sendFailures = 0
  #since = 0
  #heardAt = 0
  #retryAt = 0
  #parser
  #received
  #resetReason
  #isOfSession
  #epoch
  #out = []

  constructor(id = null, isOfSession = false) {
    this.id = id
    this.#isOfSession = isOfSession
    this.#epoch = epochOf(id)
  }

  get deadline() {
    if (this.state === 'waiting') return this.#retryAt
    if (this.state === 'connecting') return this.#since + 15_000
    return this.#inFlight ? this.#silentAt : Math.min(this.#silentAt, this.#flushAt)
  }

  get #silentAt() { return this.#heardAt + this.heartbeat * 2000 + 500 }

  adopt(name, body, isTold) {
    this.#cells.set(name, { body, isTold })
    this.#dirty.add(name)
  }

  step(event, now) {
    const isPresent = (event.attempt ?? this.#attempt) === this.#attempt
    if (isPresent && this.state !== 'closed') this['_' + event.type](event, now)
    return this.#out.splice(0)
  }

  _start(_, now) { this.#connect(now) }

  _stop() {
    this.state = 'closed'
    this.#out.push({ do: 'abort' })
  }

  _wake(event, now) { this.state === 'waiting' ? this.#connect(now) : this._tick(event, now) }

  _tick(_, now) {
    if (now < this.deadline) return
    if (this.state === 'waiting') this.#connect(now)
    else if (this.state === 'live' && now < this.#silentAt) this.#flush(now)
    else this._lost(_, now)
  }

  _want({ name, body }, now) {
    const cell = this.#cells.get(name)
    // Only this stream knows what it missed out of sight.
    if (body && cell) Object.assign(cell, { body, isTold: false })
    else if (body) this.#cells.set(name, { body, isTold: false })
    else if (this.#cells.delete(name) && cell.isSeen === undefined) return void this.#dirty.delete(name)
    if (body || cell) this.#dirty.add(name)
    this.#flushAt = Math.min(this.#flushAt, now + 16)
  }

  #connect(now) {
    this.#attempt++
    this.#since = now
    this.#parser = new EventStreamParser()
    this.#received = []
    const told = [...this.#cells].filter(([, cell]) => cell.isTold).map(([name, { body }]) => [name, body])
    if (!told.length) this.id = null
    this.#setState('connecting')
    this.#out.push({
      do: 'open', attempt: this.#attempt, path: '/v1/streams',
      ...(this.id && { id: this.id, body: { cells: Object.fromEntries(told) } }),
    })
  }

  _lost({ problem }, now) {
    const isFinal = problem && !isTransient(problem)
    if (isFinal || problem?.status === 401) {
      // What can't be resumed is bound again.
      this.#forget(isFinal && this.id && 'compacted')
      if (!isFinal || !this.id) this.#out.push({ do: 'refuse', problem })
      else return this.#connect(now)
    }
    if (this.state === 'live' && now - this.#since > 5000) this.#failures = 0
    this.#retryAt = now + backoff(this.#failures++, problem)
    this.#attempt++
    this.#out.push({ do: 'abort' })
    this.#setState('waiting')
  }

  _bytes({ bytes }, now) {
    this.#heardAt = now
    for (const { type, data: text, id } of this.#parser.push(bytes)) {
      let data
      try { data = JSON.parse(text) } catch { return this._lost({}, now) }
      if (type === 'open') this.#open(data)
      else if (type === 'bye') {
        if (this.#isOfSession && data.reason === 'expired') this.#forget('identity')
        return this._lost({}, now)
      }
      else if (type !== 'heartbeat') this.#received.push({ type, data })
      if (id) this.#commit(id)
    }
    this.#flush(now)
  }

  /** Nothing is resumed. */
  #forget(reason) {
    for (const cell of this.#cells.values()) cell.isTold = false
    this.#resetReason ||= reason
  }

  #open({ stream, heartbeat = 15 }) {
    Object.assign(this, { stream, heartbeat })
    this.#inFlight = null
    this.#batches = []
    this.#flushAt = 0
    this.#dirty = new Set()
    for (const [name, cell] of this.#cells) {
      if (cell.isGone) this.#cells.delete(name)
      cell.isSeen = cell.isTold ? true : undefined
      if (!cell.isTold) this.#dirty.add(name)
    }
    this.#setState('live')
  }

  /** Only whole commits are shown, and resumed from. */
  #commit(id) {
    const reason = this.#epoch && this.#epoch !== epochOf(id) ? 'epoch' : this.#resetReason
    if (reason && !this.#received.some(({ type }) => type === 'reset')) {
      this.#received.unshift({ type: 'reset', data: { reason } })
    }
    this.id = id
    this.#epoch = epochOf(id)
    this.#resetReason = undefined
    this.#failures = 0
    const events = []
    for (const { type, data } of this.#received.splice(0)) {
      const parts = (data.changes && !data.cell ? data.changes : [data]).filter(part => this.#cells.has(part.cell))
      if (type === 'change') data.changes = parts
      if (parts.length || type === 'reset') events.push({ type, data })
      for (const { cell: name } of parts) {
        const cell = this.#cells.get(name)
        cell.isGone ||= type === 'gone'
        cell.isTold = cell.isSeen && !this.#dirty.has(name) && !cell.isGone
      }
    }
    this.#out.push({ do: 'deliver', commit: { id, events } })
  }

  /** Sends one batch at a time, in order. */
  #flush(now) {
    if (this.state !== 'live' || this.#inFlight || now < this.#flushAt) return
    this.#flushAt = Infinity
    if (!this.#batches.length) this.#collect()
    this.#inFlight = this.#batches.shift()
    if (!this.#inFlight) return
    const path = `/v1/streams/${this.stream}/cells`
    this.#out.push({ do: 'send', attempt: this.#attempt, path, body: { cells: Object.fromEntries(this.#inFlight) } })
  }

  #collect() {
    let size = Infinity
    for (const name of this.#dirty) {
      const cell = this.#cells.get(name)
      const isSeen = cell && cell.body.visible !== false
      if (cell && cell.isSeen === isSeen) continue
      const body = !cell ? null : cell.isSeen === undefined ? cell.body : { visible: isSeen }
      if (cell) cell.isSeen = isSeen
      if (size > 300_000) {
        this.#batches.push([])
        size = 0
      }
      this.#batches.at(-1).push([name, body])
      size += JSON.stringify(body).length
    }
    this.#dirty.clear()
  }

  _answer({ problem }, now) {
    const entries = this.#inFlight
    this.#inFlight = null
    this.#flushAt = 0
    if (!problem) this.#sendFailures = 0
    else if (problem.code === 'unknown-stream') return this._lost({}, now)
    else if (isTransient(problem)) {
      this.#batches.unshift(entries)
      this.#flushAt = now + backoff(this.#sendFailures++, problem)
    } else if (entries.length > 1) {
      // Halves find the faulty one.
      this.#batches.unshift(entries.splice(0, entries.length >> 1), entries)
    } else if (this.#cells.delete(entries[0][0])) {
      this.#out.push({ do: 'refuse', name: entries[0][0], problem })
    }
    this.#flush(now)
  }

  #setState(state) {
    this.state = state
    this.#out.push({ do: 'state', state })
  }
}

function apply(values, { keyPath, kind, indexes, old, new: value }) {
  if (kind === 'setting') return void (values[keyPath] = value)
  let members = [...(values[keyPath] ?? [])]
  if (!indexes) {
    // Unordered: by reference.
    members = [...new Set([...members.filter(member => !old?.includes(member)), ...(value ?? [])])].sort()
  } else if (kind === 'removal') {
    members = members.filter((_, place) => !indexes.includes(place))
  } else {
    indexes.forEach((place, n) => members.splice(place, kind === 'replacement' ? 1 : 0, value?.[n]))
  }
  values[keyPath] = members
}

/** Throws if the list differs. */
export function applyContent(rows, sections, { count, changes, sectionChanges = [] }) {
  let start = 0
  const lists = (sections ?? [{ count: rows.length }]).map(each => rows.slice(start, (start += each.count)))
  const names = (sections ?? [{}]).map(each => each.name)
  const place = index => (sections ? index : [0, index])
  const sorted = (list, key, ...types) => list.filter(change => types.includes(change.type))
    .sort((a, b) => [a, b].map(change => [change[key]].flat()).reduce((x, y) => x[0] - y[0] || x[1] - y[1]))
  for (const { index, object } of sorted(changes, 'index', 'delete', 'move').reverse()) {
    const [section, row] = place(index)
    if (lists[section].splice(row, 1)[0]['@ref'] !== object) throw new Error(`${object} is not at ${index}`)
  }
  for (const { index } of sorted(sectionChanges, 'index', 'delete').reverse()) {
    lists.splice(index, 1)
    names.splice(index, 1)
  }
  for (const { name, newIndex } of sorted(sectionChanges, 'newIndex', 'insert')) {
    lists.splice(newIndex, 0, [])
    names.splice(newIndex, 0, name)
  }
  for (const { type, newIndex, value } of sorted(changes, 'newIndex', 'insert', 'move', 'update')) {
    const [section, row] = place(newIndex)
    lists[section].splice(row, type === 'update' ? 1 : 0, value)
  }
  const after = lists.flat()
  if (after.length !== count) throw new Error(`${after.length} rows are not ${count}`)
  return { rows: after, sections: sections && lists.map((list, n) => ({ name: names[n], count: list.length })) }
}

/** Members with _ are for Desk. */
class Observer {
  _values = {}
  // Own writes shown before their commits.
  _ahead = new Set()

  constructor(desk, callback, options = ['new', 'initial']) {
    Object.assign(this, { _desk: desk, _callback: callback, _options: [options].flat() })
  }

  end() {
    this._isEnded = true
    this._desk.bind(this, null)
  }

  get visible() { return !this._isHidden }
  set visible(visible) {
    if (visible === this.visible) return
    this._isHidden = !visible
    if (this._name) this._desk.revise(this, { ...this._body, visible })
  }

  _bind(body) {
    if (this._isEnded || (isEqual({ ...body, visible: 0 }, { ...this._body, visible: 0 }) && !this._isOver)) return
    this._desk.bind(this, body && this._isHidden ? { ...body, visible: false } : body)
  }

  /** `old` has the members that an unordered to-many has lost. */
  _bindObject(object, keyPaths) {
    const named = keyPaths && { keyPaths: [keyPaths].flat() }
    const options = ['new', 'old', 'initial', ...(this._options.includes('prior') ? ['prior'] : [])]
    this._bind(object ? { object, ...named, options } : null)
  }

  _hear(type, { cell, changes, ...more }, { cell: _, ...change }) {
    if (type === 'gone') return this._tell([], { ...more, gone: true })
    if (!change.prior) apply(this._values, change)
    if (more.initial && !this._isStale && !this._options.includes('initial')) return
    if (!this._isEcho(more.writer, change)) this._add(change, more)
  }

  _over(object, values) {
    for (const each of this._ahead) if (each.object === object) values = { ...values, [each.keyPath]: each.value }
    return values
  }

  _at({ object, keyPath }) { if (this._body.object === object) return this._over(object, this._values)[keyPath] }

  /** True if it shows already; otherwise it ends what is ahead. */
  _isEcho(writer, change) {
    const writes = [...this._ahead].filter(each => isOfKey(each, change))
    const own = writes.find(each => each.writer === writer)
    const isSetting = change.kind === 'setting'
    // An unordered to-many may have another order.
    if (own && isSetting && isEqual(...[change.new, own.value].map(value => [value].flat().sort()))) {
      own.value = change.new
      return true
    }
    for (const each of writes) this._ahead.delete(each)
    if (isSetting || !writes[0]) return false
    // Its list is not the shown one.
    delete change.indexes
    Object.assign(change, { kind: 'setting', old: writes.at(-1).value, new: this._values[change.keyPath] })
  }

  /** Applies a committed write. */
  _keep({ keyPath, value }) { this._values[keyPath] = value }

  /** Notifies of the shown value in place of `old`. */
  _show(write, old, more) {
    this._finish()
    const { object, keyPath } = write
    const value = this._at(write)
    if (value === undefined || (!more && isEqual(value, old))) return
    this._tell([{ object, keyPath, kind: 'setting', old, new: value }], { revision: this._desk.revision, ...more })
  }

  _finish() {}
}

class Observation extends Observer {
  constructor(desk, object, keyPaths, { options, context } = {}, callback) {
    super(desk, callback, options)
    this._context = context === undefined ? {} : { context }
    this._bindObject(object, keyPaths)
  }

  _add(change, more) { this._tell([change], more) }

  _tell([change = {}], more) {
    for (const name of ['old', 'new']) if (!this._options.includes(name)) delete change[name]
    this._desk.call(this, { ...change, ...more, ...this._context })
  }
}

class Cell extends Observer {
  #changes = []
  #more

  bind(object, keyPaths) { this._bindObject(object, keyPaths) }

  _add(change, more) {
    this.#more = more
    this.#changes.push(change)
  }

  _finish() { if (this.#changes.length) this._tell(this.#changes.splice(0), this.#more) }

  _tell(changes, more) {
    const { object } = this._body
    this._desk.call(this, { object, values: { ...this._over(object, this._values) }, changes, ...more })
  }
}

class Query extends Observer {
  rows = []
  count = 0
  failed = 0
  #rows = []

  constructor(desk, query, callback) {
    super(desk, callback)
    this.change(query)
  }

  change(query) {
    const { visible, ...body } = { ...this._body, ...query }
    this._bind(Object.fromEntries(Object.entries(body).filter(([, value]) => value != null)))
  }

  _hear(type, { cell, ...data }) {
    const { count, changes = [], writer, sections, aggregates, total = this.total, failed = 0 } = data
    let isEcho = changes.length && !sections && !aggregates && total === this.total && failed === this.failed
    try {
      const next = type === 'results' ? { rows: data.objects } : applyContent(this.#rows, this.sections, data)
      this.#rows = next.rows
      this.sections = sections ?? next.sections
    } catch {
      // Not the server's list.
      return this._desk.bind(this, this._body)
    }
    Object.assign(this, { count, total, failed, aggregates })
    for (const change of changes) {
      const { type, object, value, keys = Object.keys(value ?? {}), index, newIndex } = change
      const kind = type === 'update' && !keys[1] && isEqual(index, newIndex) ? 'setting' : type
      for (const keyPath of keys) isEcho &= this._isEcho(writer, { object, keyPath, kind, new: value[keyPath] })
      if (value) change.value = this._over(object, value)
      // A move by a key that is not shown names none.
      if (!keys[0]) isEcho = false
    }
    if (!isEcho) this._desk.call(this, { type, ...data })
  }

  _finish() { this.rows = this.#rows.map(row => this._over(row['@ref'], row)) }

  _at({ object, keyPath }) { return this.rows.find(row => row['@ref'] === object)?.[keyPath] }

  _keep({ object, keyPath, value }) {
    this.#rows = this.#rows.map(row => (row['@ref'] === object ? { ...row, [keyPath]: value } : row))
  }

  _tell([{ object, keyPath }], more) {
    let [section, row] = [0, this.rows.findIndex(row => row['@ref'] === object)]
    const value = this.rows[row]
    while (this.sections && row >= this.sections[section].count) row -= this.sections[section++].count
    const index = this.sections ? [section, row] : row
    const changes = [{ type: 'update', object, index, newIndex: index, keys: [keyPath], value }]
    this._desk.call(this, { type: 'content', count: this.count, changes, ...more })
  }
}

/** Applies all of a commit, then runs callbacks. */
export class Desk {
  id = null
  #tab
  #want
  #made = 0
  #observers = new Map()
  #writes = []
  #calls = []
  #isRunning = false

  constructor(tab, want) {
    this.#tab = tab
    this.#want = want
  }

  get revision() { return this.id ? revisionOf(this.id) : undefined }

  isBehind(cursor) { return epochOf(cursor) === epochOf(this.id) && revisionOf(cursor) > this.revision }

  observe(object, keyPaths, options, callback = options) {
    return new Observation(this, object, keyPaths, callback === options ? {} : options, callback)
  }

  cell(callback) { return new Cell(this, callback) }
  query(query, callback) { return new Query(this, query, callback) }

  bind(observer, body, _isStale = false) {
    if (this.#observers.delete(observer._name)) this.#want(observer._name, null)
    const name = body && `${this.#tab}-${++this.#made}`
    Object.assign(observer, { _name: name, _body: body, _isStale, _values: {}, _ahead: new Set() })
    observer._isTold = observer._isOver = observer._isRefused = false
    if (!name) return
    this.#observers.set(name, observer)
    this.#want(name, body)
  }

  revise(observer, body) {
    observer._body = body
    if (!observer._isOver) this.#want(observer._name, body)
  }

  endAll() { for (const observer of [...this.#observers.values()]) observer.end() }

  report() {
    return this.#bound.map(each => [each._name, each._body, each._isTold && each.visible])
  }

  get #bound() { return [...this.#observers.values()].filter(each => !each._isOver) }

  #expectState() { for (const each of this.#observers.values()) each._isStale ||= each._isTold }

  /** Binds all again. True if any had its state. */
  restart() {
    this.#expectState()
    const observers = this.#bound
    for (const each of observers) this.bind(each, each._body, each._isStale)
    return observers.some(each => each._isStale)
  }

  take({ id, events }) {
    this.id = id
    const heard = new Set()
    const resets = events.filter(({ type }) => type === 'reset')
    if (resets.length) this.#expectState()
    for (const write of this.#writes) {
      const told = events.find(({ data }) => data.writer === write.writer)
      if (told) write.cursor ??= `${epochOf(id)}-${told.data.revision}`
    }
    for (const { type, data } of events) {
      for (const part of type === 'change' ? data.changes : [data]) {
        const observer = this.#observers.get(part.cell)
        if (!observer || observer._isOver) continue
        const _isOver = type === 'gone'
        const isAnew = _isOver || (data.initial && !heard.has(observer))
        if (isAnew) Object.assign(observer, { _values: {}, _ahead: new Set() })
        Object.assign(observer, { _isTold: true, _isRefused: false, _isOver })
        heard.add(observer)
        observer._hear(type, data, part)
      }
    }
    for (const observer of heard) {
      observer._finish()
      observer._isStale = false
    }
    this.#settle()
    return resets.map(({ data }) => data.reason)
  }

  refuse(name, problem) {
    for (const each of this.#bound) {
      if (name ? each._name !== name : each._isRefused) continue
      each._isOver = !!name
      each._isStale ||= each._isTold
      each._isTold = false
      each._isRefused = true
      this.call(each, { problem })
    }
    this.run()
  }

  call(observer, what) { this.#calls.push([observer, observer._name, what]) }

  /** Skips observers that have ended or are bound again. */
  run() {
    if (this.#isRunning) return
    this.#isRunning = true
    for (const [observer, name, what] of this.#calls) {
      if (observer._isEnded || observer._name !== name) continue
      try { observer._callback?.(what) } catch (error) { (globalThis.reportError ?? console.error)(error) }
    }
    this.#calls = []
    this.#isRunning = false
  }

  newWriter() { return `${this.#tab}.${++this.#made}` }

  begin(object, keyPath, value) {
    const write = { object, keyPath, value, writer: this.newWriter(), epoch: epochOf(this.id) }
    for (const each of this.#bound) {
      const old = each._at(write)
      if (old === undefined || !each.visible || each._options.includes('prior')) continue
      // What shows already is notified by its commit.
      if (isEqual(old, value) && !each._ahead.size) continue
      each._ahead.add(write)
      each._show(write, old, { pending: true })
    }
    this.#writes.push(write)
    this.run()
    return write
  }

  /** Shows a write until its commit, which `cursor` names, comes. */
  settle(write, cursor) {
    write.cursor = cursor
    this.#settle()
    this.run()
  }

  fail(write, refused) {
    this.#close(write, { refused })
    this.#settle()
    this.run()
  }

  /** A commit of another store is still to come if the write began with the one that shows. */
  #isOpen({ cursor, epoch }) {
    if (!cursor || !this.id) return !cursor
    const present = epochOf(this.id)
    return this.isBehind(cursor) || (epochOf(cursor) !== present && epoch === present)
  }

  /** Closes writes in the order of commits, once all of a key path are known. */
  #settle() {
    const open = this.#writes.filter(each => this.#isOpen(each))
    const closing = this.#writes.filter(write => !open.some(each => isOfKey(each, write)))
    for (const write of closing.sort((a, b) => revisionOf(a.cursor) - revisionOf(b.cursor))) this.#close(write)
  }

  #close(write, more) {
    this.#writes = this.#writes.filter(each => each !== write)
    for (const each of this.#bound) {
      const old = each._at(write)
      if (!each._ahead.delete(write)) continue
      if (!more) each._keep(write)
      each._show(write, old, more)
    }
  }
}

const random = () => Math.random().toString(36).slice(2)
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

const pathOf = (object, keyPath) =>
  '/v1/objects/' + [...object.split('/'), ...(keyPath ? [keyPath] : [])].map(encodeURIComponent).join('/')

/** Tabs of different users share nothing. */
function subjectOf(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).sub
  } catch {
    return ''
  }
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({}))
  const { status, headers } = response
  const code = body.type ? undefined : `http-${status}`
  return new KeywayProblem({ ...body, code, status, retryAfter: Number(headers.get('Retry-After')) || undefined })
}

/** The tab with the lock `lead` has the stream for all. Without locks each tab leads itself. */
export class Keyway extends EventTarget {
  state = 'connecting'
  #world
  #base
  #token
  #lastToken
  #desk = new Desk(random(), (name, body) => this.#want(name, body))
  #line
  #open
  #timer
  #tags = new Map()
  #closing = new AbortController()
  // This tab's name, new at each join, and its leader's.
  #seat
  #leader
  // Bindings without a leader.
  #late = []
  #group
  #subject
  #channel
  #leaving
  // In a leader: the others' cells and reports.
  #members = new Map()
  #reports
  #heartbeat = 15
  #heardAt = 0
  #saidAt = 0

  constructor({ url, token } = {}, world = globalThis) {
    super()
    this.#world = world
    this.#base = String(url ?? world.location.origin).replace(/\/+$/, '')
    this.#token = token
    const { document } = world
    const on = (target, name, body) => target?.addEventListener?.(name, body, { signal: this.#closing.signal })
    on(world, 'pagehide', () => this.#leave())
    on(world, 'pageshow', () => this.#join())
    on(document, 'freeze', () => this.#leave())
    on(document, 'resume', () => this.#join())
    on(world, 'online', () => this.#wake())
    on(document, 'visibilitychange', () => document.visibilityState === 'visible' && this.#wake())
    this.#join()
  }

  async get(object, keyPath) { return this.#ask('GET', pathOf(object, keyPath)) }

  /** All pages are of one state. */
  async list({ entity, limit, ...query }) {
    const rows = []
    const most = limit ?? Infinity
    let page
    do {
      const asked = { ...query, page, limit: Math.min(1000, most - rows.length) }
      const given = new URLSearchParams(Object.entries(asked).filter(([, value]) => value != null))
      const { objects, next, count, ...more } = await this.#ask('GET', `${pathOf(entity)}?${given}`)
      Object.assign(rows, more).push(...objects)
      page = next
    } while (page && rows.length < most)
    return rows
  }

  async set(object, keyPath, value = null, options) {
    const path = pathOf(object, keyPath)
    const write = this.#desk.begin(object, keyPath, value)
    try {
      return await this.#ask('PUT', path, { body: value, ...options, write })
    } catch (error) {
      // Only the answer was lost.
      if (write.cursor && isTransient(error)) return value
      this.#desk.fail(write, error)
      throw error
    }
  }

  async create(entity, value, options) { return this.#ask('POST', pathOf(entity), { body: value, ...options }) }

  async patch(object, changes, options) { return this.#ask('PATCH', pathOf(object), { body: changes, ...options }) }
  async delete(object, options) { return this.#ask('DELETE', pathOf(object), options) }

  async transact(operations, options) {
    return this.#ask('POST', '/v1/transactions', { body: { operations }, ...options })
  }

  async etag(object, keyPath) {
    const path = pathOf(object, keyPath)
    const isTold = this.#desk.report().some(([, body, isTold]) =>
      isTold && body.object === object && body.keyPaths?.includes(keyPath))
    const known = this.#tags.get(path)
    if (isTold && !this.#desk.isBehind(known?.cursor)) return `"${this.#desk.id}"`
    if (!known) await this.get(object, keyPath)
    return this.#tags.get(path)?.tag
  }

  async #ask(method, path, { body, ifMatch, lifetime, write } = {}) {
    const headers = {}
    if (method !== 'GET') headers['Keyway-Writer'] = write?.writer ?? this.#desk.newWriter()
    if (method === 'POST') headers['Idempotency-Key'] = random() + random()
    if (ifMatch !== undefined) headers['If-Match'] = await ifMatch
    if (lifetime !== undefined) headers['Keyway-Lifetime'] = lifetime
    for (let failures = 1; ; failures++) {
      try {
        const response = await this.#fetch(method, path, { headers, body })
        const tag = response.headers.get('ETag')
        const cursor = response.headers.get('Keyway-Cursor')
        // An answer without a cursor is not the server's.
        if (write && cursor) this.#desk.settle(write, cursor)
        this.#tags.delete(path)
        if (this.#tags.size > 1000) this.#tags.clear()
        if (tag) this.#tags.set(path, { tag, cursor })
        return response.status === 204 ? undefined : await response.json().catch(this.#away)
      } catch (problem) {
        const isSafe = method === 'GET' || method === 'POST'
        if (failures > 3 || !isSafe || problem.status === 401 || !isTransient(problem)) throw problem
        await sleep(backoff(failures, problem))
      }
    }
  }

  /** Without a token, uses the cookie. */
  async #fetch(method, path, { headers, body, ...options } = {}) {
    const ask = async () => {
      this.#lastToken = await this.#askToken()
      this.#meet(this.#lastToken)
      const request = { ...this.#request(method, headers, body), ...options }
      return this.#world.fetch(this.#base + path, request).catch(this.#away)
    }
    let response = await ask()
    if (response.status === 401 && this.#token) response = await ask()
    if (!response.ok) throw await problemOf(response)
    return response
  }

  async #askToken() {
    try {
      return await this.#token?.()
    } catch (error) {
      this.#away(error, { code: 'no-token', detail: `The page has no token: ${error?.message ?? error}` })
    }
  }

  /** Throws a problem for the user if no response came. */
  #away = (cause, told = { detail: 'The server cannot be reached.' }) => {
    const isOffline = this.#world.navigator?.onLine === false
    throw new KeywayProblem({ ...(isOffline ? { code: 'offline', detail: 'This device is offline.' } : told), cause })
  }

  #request(method, headers, body) {
    return {
      method, cache: 'no-store', credentials: this.#token ? 'same-origin' : 'include',
      headers: {
        ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(this.#lastToken && { Authorization: `Bearer ${this.#lastToken}` }),
      },
      body: JSON.stringify(body),
    }
  }

  observe(...of) { return this.#desk.observe(...of) }
  cell(callback) { return this.#desk.cell(callback) }
  query(query, callback) { return this.#desk.query(query, callback) }

  close() {
    this.#desk.endAll()
    this.#setState('closed')
    this.#leave()
    this.#closing.abort()
  }

  #want(name, body) {
    if (this.#line) return this.#step({ type: 'want', name, body })
    this.#late.push([name, body])
    if (this.#leader) this.#sayLate()
  }

  #sayLate() { this.#say({ cells: this.#late.splice(0) }) }

  #setState(state) {
    if (state === this.state || this.state === 'closed') return
    this.state = state
    this.dispatchEvent(new Event('state'))
  }

  #reset(reason) { this.dispatchEvent(Object.assign(new Event('reset'), { reason })) }

  #deliver(commit) {
    this.#desk.take(commit).forEach(reason => this.#reset(reason))
    this.#desk.run()
  }

  async #join() {
    if (this.#seat || this.state === 'closed') return
    const seat = (this.#seat = random())
    const { signal } = (this.#leaving = new AbortController())
    this.#heardAt = Date.now()
    const token = await Promise.resolve().then(this.#token).catch(() => {})
    if (signal.aborted) return
    this.#lastToken = token
    this.#subject = token && subjectOf(token)
    const { BroadcastChannel, navigator } = this.#world
    if (!BroadcastChannel || !navigator?.locks) return this.#lead(new Map())
    this.#group = `keyway ${this.#base} ${this.#subject ?? ''}`
    this.#channel = new BroadcastChannel(this.#group)
    this.#channel.onmessage = ({ data }) => this.#hear(data)
    this.#hold(`tab ${seat}`, () => {
      this.#hold('lead', () => this.#takeOver())
      this.#say({ join: this.#report() })
      this.#tick()
    })
  }

  /** With another user's token, or none, this tab joins another group. */
  #meet(token) {
    if (!this.#leader || (token && subjectOf(token)) === this.#subject) return
    this.#leave()
    if (this.#desk.restart()) this.#reset('identity')
    this.#join()
  }

  /** Holds a lock until this tab leaves; if it is stolen, joins again. */
  #hold(name, granted, options = { signal: this.#leaving.signal }) {
    const { signal } = this.#leaving
    const held = new Promise(resolve => signal.addEventListener('abort', resolve))
    this.#lock(name, options, () => {
      if (signal.aborted) return
      granted()
      return held
    }).catch(() => {
      if (signal.aborted) return
      this.#leave()
      this.#join()
    })
  }

  #lock(name, ...of) { return this.#world.navigator.locks.request(`${this.#group} ${name}`, ...of) }

  /** When left, frozen or kept for Back. */
  #leave() {
    if (!this.#seat) return
    this.#leaving.abort()
    clearTimeout(this.#timer)
    this.#say({ leave: true })
    this.#channel?.close()
    if (this.#line?.stream) {
      const end = { ...this.#request('DELETE'), keepalive: true }
      this.#world.fetch(`${this.#base}/v1/streams/${this.#line.stream}`, end).catch(() => {})
    }
    this.#step({ type: 'stop' })
    this.#seat = this.#leader = this.#line = this.#channel = this.#reports = null
    this.#members.clear()
    this.#setState('waiting')
  }

  #report() {
    this.#late = []
    return { id: this.#desk.id, cells: this.#desk.report() }
  }

  #say(message) {
    this.#saidAt = Date.now()
    const { heartbeat } = this.#line ?? {}
    this.#channel?.postMessage({ from: this.#seat, state: this.state, heartbeat, ...message })
  }

  /** Asks the others what they observe. */
  async #takeOver() {
    const { signal } = this.#leaving
    const reports = (this.#reports = new Map())
    const { held } = await this.#world.navigator.locks.query()
    const others = held.filter(({ name }) => name.startsWith(`${this.#group} tab `)).length - 1
    this.#say({ hello: true })
    for (let n = 0; n < 25 && reports.size < others && !signal.aborted; n++) await sleep(20)
    if (!signal.aborted) this.#lead(reports)
  }

  #lead(reports) {
    const own = this.#report()
    const told = [own, ...reports.values()].find(({ cells }) => cells.some(([, , isTold]) => isTold))
    const line = (this.#line = new Line(told?.id, !this.#lastToken))
    this.#desk.id = line.id
    this.#reports = null
    this.#leader = this.#seat
    for (const cell of own.cells) line.adopt(...cell)
    for (const [seat, report] of reports) this.#admit(seat, report, report.id === line.id)
    this.#step({ type: 'start' })
  }

  /** The tab's lock shows when it is gone. */
  #admit(seat, { cells }, isEven) {
    this.#members.set(seat, new Set(cells.map(([name]) => name)))
    if (isEven) for (const cell of cells) this.#line.adopt(...cell)
    this.#lock(`tab ${seat}`, { signal: this.#leaving.signal }, () => this.#dismiss(seat)).catch(() => {})
    this.#say({ to: seat, isEven, id: this.#line.id })
  }

  #dismiss(seat) {
    for (const name of this.#members.get(seat) ?? []) this.#step({ type: 'want', name, body: null })
    this.#members.delete(seat)
  }

  #hear({ from, to, isEven, id, ...message }) {
    if (this.#line || this.#reports) return this.#hearMember(from, message)
    if (message.hello) {
      this.#leader = null
      return this.#say({ join: this.#report(), isReply: true })
    }
    if (to === this.#seat) {
      this.#leader = from
      if (!isEven) {
        this.#desk.id = id
        if (this.#desk.restart()) this.#reset('away')
      }
      this.#sayLate()
    }
    if (from !== this.#leader) return
    this.#heardAt = Date.now()
    this.#heartbeat = message.heartbeat
    this.#setState(message.state === 'closed' ? 'waiting' : message.state)
    if (message.commit) this.#deliver(message.commit)
    if (message.problem) this.#desk.refuse(message.name, new KeywayProblem(message.problem))
  }

  #hearMember(seat, { join, isReply, cells, leave, wake }) {
    const members = this.#members
    if (this.#reports) {
      if (join) this.#reports.set(seat, join)
    } else if (join && !(isReply && members.has(seat))) {
      this.#dismiss(seat)
      this.#admit(seat, join, false)
    } else if (cells && members.has(seat)) {
      for (const [name, body] of cells) {
        members.get(seat)[body ? 'add' : 'delete'](name)
        this.#step({ type: 'want', name, body })
      }
    } else if (leave) {
      this.#dismiss(seat)
    } else if (wake) {
      this.#step({ type: 'wake' })
      this.#say()
    }
  }

  #wake() {
    if (this.#line) return this.#step({ type: 'wake' })
    this.#say({ wake: true })
    this.#heardAt = Math.min(this.#heardAt, Date.now() - this.#patience + 3000)
  }

  get #patience() { return this.#heartbeat * 3000 }

  #step(event) {
    const line = this.#line
    for (const action of line?.step(event, Date.now()) ?? []) if (line === this.#line) this.#perform(action)
    if (line && line === this.#line) this.#schedule()
  }

  #perform({ do: kind, ...action }) {
    const share = message => { if (this.#members.size) this.#say(message) }
    if (kind === 'abort') this.#open?.abort()
    if (kind === 'open') this.#read(action)
    if (kind === 'send') this.#send(action)
    if (kind === 'state') {
      this.#setState(action.state)
      share()
    }
    if (kind === 'deliver') {
      share(action)
      this.#deliver(action.commit)
    }
    if (kind === 'refuse') {
      share({ name: action.name, problem: { ...action.problem } })
      this.#desk.refuse(action.name, action.problem)
    }
  }

  async #read({ attempt, path, id, body }) {
    const { signal } = (this.#open = new AbortController())
    const line = this.#line
    const step = event => line === this.#line && this.#step({ attempt, ...event })
    try {
      const headers = { Accept: 'text/event-stream', ...(id && { 'Last-Event-ID': id }) }
      const response = await this.#fetch(body ? 'POST' : 'GET', path, { headers, body, signal })
      if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) throw null
      const reader = response.body.getReader()
      for (let next; !(next = await reader.read()).done; ) step({ type: 'bytes', bytes: next.value })
      step({ type: 'lost' })
    } catch (problem) {
      step({ type: 'lost', problem: problem?.status ? problem : undefined })
    }
  }

  async #send({ attempt, path, body }) {
    const line = this.#line
    let problem
    try {
      await this.#fetch('PATCH', path, { body, signal: AbortSignal.timeout(15_000) })
    } catch (error) {
      problem = error
    }
    if (line === this.#line) this.#step({ type: 'answer', attempt, problem })
  }

  #tick() {
    if (this.#line) {
      this.#step({ type: 'tick' })
      if (Date.now() - this.#saidAt > this.#line.heartbeat * 1000) this.#say()
    } else if (Date.now() - this.#heardAt > this.#patience && !this.#reports) {
      // A silent leader hangs.
      this.#heardAt = Date.now()
      if (this.#world.document.visibilityState !== 'hidden') this.#hold('lead', () => this.#takeOver(), { steal: true })
    }
    this.#schedule()
  }

  /** The machine may sleep. */
  #schedule() {
    clearTimeout(this.#timer)
    const due = this.#line ? Math.min(5000, Math.max(0, this.#line.deadline - Date.now())) : 1000
    if (this.#seat) this.#timer = setTimeout(() => this.#tick(), due)
  }

  static shared
}

const textOf = value => (value == null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value))

if (globalThis.customElements && !customElements.get('keyway-value')) {
  // The oldest out of sight end.
  const unseen = new Set()
  const sight = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      unseen.delete(target)
      if (!target.isConnected) continue
      if (isIntersecting && !target.live) target.begin()
      if (!target.live) continue
      target.live.visible = isIntersecting
      if (!isIntersecting) unseen.add(target)
      if (unseen.size > 100) [...unseen][0].finish()
    }
  })

  class LiveElement extends HTMLElement {
    connectedCallback() { sight.observe(this) }

    disconnectedCallback() {
      sight.unobserve(this)
      this.finish()
      this.tell(null)
    }

    attributeChangedCallback(_, old, value) {
      if (!(this.live || this.alert) || old === value) return
      this.tell(null)
      this.begin()
    }

    begin() {
      const { lack } = this
      if (!lack) return this.bind()
      this.finish()
      const detail = `<${this.localName}> has no ${lack}`
      this.tell({ problem: new KeywayProblem({ code: 'incomplete-element', detail }) })
    }

    finish() {
      unseen.delete(this)
      this.live?.end()
      this.live = null
    }

    /** Shows a problem in place of the value, unless the page shows it itself. */
    tell(update) {
      const { problem: detail } = update ?? {}
      this.alert?.remove()
      this.alert = null
      this.show(detail ? null : update)
      if (!detail) return
      this.alert = document.createElement('span')
      if (!this.dispatchEvent(new CustomEvent('problem', { detail, bubbles: true, cancelable: true }))) return
      console.error(this, detail)
      this.alert.setAttribute('role', 'alert')
      this.alert.style.color = 'light-dark(firebrick, lightcoral)'
      this.alert.textContent = detail.detail
      this.append(this.alert)
    }
  }

  customElements.define('keyway-value', class extends LiveElement {
    static observedAttributes = ['object', 'key-path']

    get lack() { return this.getAttribute('object') && !this.getAttribute('key-path') && 'key-path' }

    bind() {
      this.live ??= (Keyway.shared ??= new Keyway()).cell(update => this.tell(update))
      this.live.bind(...this.constructor.observedAttributes.map(name => this.getAttribute(name)))
    }

    show(update) { this.textContent = textOf(Object.values(update?.values ?? {})[0]) }
  })

  customElements.define('keyway-list', class extends LiveElement {
    static observedAttributes = ['entity', 'filter', 'sort', 'section', 'limit']
    #elements = new Map()

    get template() { return this.querySelector('template') }

    get lack() {
      if (!this.getAttribute('entity')) return 'entity'
      return !this.template?.content.firstElementChild && '<template> with an element'
    }

    bind() {
      const query = Object.fromEntries(this.constructor.observedAttributes.map(name => [name, this.getAttribute(name)]))
      const named = this.template.content.querySelectorAll('[data-key]')
      query.keys = [...new Set([...named].map(({ dataset }) => dataset.key))].filter(key => key[0] !== '@')
      query.limit &&= Number(query.limit)
      if (this.live) this.live.change(query)
      else this.live = (Keyway.shared ??= new Keyway()).query(query, event => this.tell(event))
    }

    show(event) {
      const before = this.#elements
      this.#elements = new Map()
      for (const row of (event && this.template && this.live?.rows) || []) {
        const ref = row['@ref']
        const element = before.get(ref) ?? document.importNode(this.template.content.firstElementChild, true)
        before.delete(ref)
        this.#elements.set(ref, element)
        if (element.row === row) continue
        element.row = row
        for (const each of [element, ...element.querySelectorAll('[data-key]')]) {
          if (each.dataset.key) each.textContent = textOf(row[each.dataset.key])
        }
      }
      for (const element of before.values()) element.remove()
      let next = null
      for (const element of [...this.#elements.values()].reverse()) {
        if (!element.parentNode || element.nextSibling !== next) this.insertBefore(element, next)
        next = element
      }
    }
  })
}
