// What the client's tests talk to in the place of a server: objects, commits, streams with cells and their replay, told
// as the specification says, from two whole states each time. It is slow and small on purpose: it is the oracle.

/** Random numbers that a seed repeats (mulberry32). */
export function randomNumbers(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }
  const below = count => Math.floor(next() * count)
  return { next, below, pick: list => list[below(list.length)], chance: probability => next() < probability }
}

/** What an object has; `calm` notifies changes alone, `note` nothing. */
const values = { value: 0, group: 'g0', calm: 0, note: 0 }
const isTold = (keyPath, old, value) => keyPath !== 'note' && (keyPath !== 'calm' || old !== value)

const order = (a, b) => (a === b ? 0 : a === undefined || (b !== undefined && a < b) ? -1 : 1)

/** The rows of a query in a state, and its sections: filtered, sorted and grouped with no cleverness. */
export function rowsOf(state, { entity, min = -Infinity, sort = 'value', section, keys }) {
  const key = sort.replace('-', '')
  const sign = sort.startsWith('-') ? -1 : 1
  const rows = Object.values(state).filter(row => row['@ref'].startsWith(entity + '/') && row.value >= min)
  rows.sort((a, b) => (section ? order(a[section], b[section]) : 0) || sign * order(a[key], b[key])
    || order(a['@ref'], b['@ref']))
  const names = [...new Set(rows.map(row => row[section]))]
  const sections = section && names.map(name => ({ name, count: rows.filter(row => row[section] === name).length }))
  const shown = ({ '@ref': ref, ...row }) => ({ '@ref': ref, ...Object.fromEntries(keys.map(key => [key, row[key]])) })
  return { rows: keys ? rows.map(shown) : rows, sections }
}

/** What leads from one result to another, as a `content` tells it. */
export function contentBetween(before, after) {
  const place = ({ rows, sections }, ref) => {
    const flat = rows.findIndex(row => row['@ref'] === ref)
    let [section, row] = [0, flat]
    while (sections && row >= sections[section].count) row -= sections[section++].count
    return sections ? [section, row] : flat
  }
  const nameAt = (list, ref) => list.sections?.[place(list, ref)[0]].name
  const has = (list, ref) => list.rows.some(row => row['@ref'] === ref)
  const kept = before.rows.map(row => row['@ref'])
    .filter(ref => has(after, ref) && nameAt(before, ref) === nameAt(after, ref))
  // The longest run of rows that keep their order stays; the others move.
  const targets = kept.map(ref => after.rows.findIndex(row => row['@ref'] === ref))
  const best = targets.map(() => 1)
  const previous = targets.map(() => -1)
  targets.forEach((target, n) => targets.slice(0, n).forEach((earlier, m) => {
    if (earlier < target && best[m] + 1 > best[n]) [best[n], previous[n]] = [best[m] + 1, m]
  }))
  const staying = new Set()
  for (let n = best.indexOf(Math.max(...best)); n >= 0; n = previous[n]) staying.add(kept[n])
  const changes = []
  for (const row of before.rows) {
    const object = row['@ref']
    if (!has(after, object)) changes.push({ type: 'delete', object, index: place(before, object) })
  }
  for (const value of after.rows) {
    const object = value['@ref']
    const old = before.rows.find(row => row['@ref'] === object)
    const newIndex = place(after, object)
    if (!old) {
      changes.push({ type: 'insert', object, newIndex, value })
      continue
    }
    const keys = Object.keys(value).filter(key => key !== 'note' && old[key] !== value[key])
    const index = place(before, object)
    if (!staying.has(object)) changes.push({ type: 'move', object, index, newIndex, keys, value })
    else if (keys.length) changes.push({ type: 'update', object, index, newIndex, keys, value })
  }
  const sectionChanges = []
  const names = list => (list.sections ?? []).map(section => section.name)
  names(before).forEach((name, index) => {
    if (!names(after).includes(name)) sectionChanges.push({ type: 'delete', name, index })
  })
  names(after).forEach((name, newIndex) => {
    if (!names(before).includes(name)) sectionChanges.push({ type: 'insert', name, newIndex })
  })
  return { count: after.rows.length, changes, ...(sectionChanges.length && { sectionChanges }) }
}

export class ModelServer {
  constructor() {
    this.made = 0
    this.streams = new Map()
    this.log = []
    this.wipe()
  }

  /** Another store in the place of this one: other epoch, no history. */
  wipe() {
    this.epoch = `e${++this.made}`
    this.revision = 1
    this.states = new Map([[1, {}]])
    this.commits = new Map()
    this.oldest = 1
    for (let n = 0; n < 6; n++) {
      this.states.get(1)[`A/${n}`] = { '@ref': `A/${n}`, ...values, value: n, group: `g${n % 3}` }
    }
    this.restart()
  }

  restart() { for (const stream of [...this.streams.values()]) this.cut(stream) }

  cut(stream) {
    this.streams.delete(stream.name)
    stream.onEnd()
  }

  get state() { return this.states.get(this.revision) }
  get id() { return `${this.epoch}-${this.revision}` }

  /** One commit: `sets` are [object, key, value]; a value of undefined deletes the object. */
  commit(sets, writer) {
    const state = { ...this.state }
    this.revision++
    const operations = []
    for (const [object, keyPath, value] of sets) {
      const old = state[object]
      if (value === undefined) {
        delete state[object]
        operations.push({ object, isGone: !!old })
      } else {
        state[object] = { ...(old ?? { '@ref': object, ...values }), [keyPath]: value }
        if (old) operations.push({ object, keyPath, old: old[keyPath], new: value })
      }
    }
    this.states.set(this.revision, state)
    this.commits.set(this.revision, { operations, writer })
    for (const stream of this.streams.values()) this.tell(stream, this.revision)
  }

  /** What one commit tells a stream's cells. */
  tell(stream, revision) {
    const { operations, writer } = this.commits.get(revision)
    const head = { revision, ...(writer && { writer }) }
    const changes = []
    const others = []
    for (const [cell, { body, isSeen }] of stream.cells) {
      if (!isSeen) continue
      if (body.entity) {
        const [before, after] = [revision - 1, revision].map(each => rowsOf(this.states.get(each), body))
        const content = contentBetween(before, after)
        if (content.changes.length) others.push({ type: 'content', data: { ...head, cell, ...content } })
      } else if (operations.some(each => each.isGone && each.object === body.object)) {
        others.push({ type: 'gone', data: { ...head, cell, object: body.object } })
      }
    }
    for (const { object, keyPath, old, new: value, isGone } of operations) {
      for (const [cell, { body, isSeen }] of isTold(keyPath, old, value) ? stream.cells : []) {
        if (!isSeen || isGone || body.object !== object || !body.keyPaths.includes(keyPath)) continue
        if (operations.some(each => each.isGone && each.object === object)) continue
        const change = { cell, object, keyPath, kind: 'setting' }
        if (body.options.includes('old')) change.old = old
        if (body.options.includes('new')) change.new = value
        changes.push(change)
      }
    }
    others.sort((a, b) => order(a.type, b.type))
    const change = changes.length ? [{ type: 'change', data: { ...head, changes } }] : []
    this.send(stream, [...change, ...others], revision)
  }

  /** The state of cells, as it is told first. */
  tellState(stream, names) {
    const head = { revision: this.revision, initial: true }
    const changes = []
    const others = []
    for (const cell of names) {
      const { body, isSeen } = stream.cells.get(cell)
      if (!isSeen) continue
      if (body.entity) {
        const { rows, sections } = rowsOf(this.state, body)
        const results = { ...head, cell, count: rows.length, objects: rows, ...(sections && { sections }) }
        others.unshift({ type: 'results', data: results })
      } else if (!this.state[body.object]) {
        others.push({ type: 'gone', data: { revision: this.revision, cell, object: body.object } })
      } else {
        for (const keyPath of body.keyPaths) {
          const change = { cell, object: body.object, keyPath, kind: 'setting' }
          if (body.options.includes('new')) change.new = this.state[body.object][keyPath]
          changes.push(change)
        }
      }
    }
    const change = changes.length ? [{ type: 'change', data: { ...head, changes } }] : []
    this.send(stream, [...change, ...others], this.revision)
  }

  send(stream, events, revision) {
    const block = ({ type, data }, isLast) =>
      `${isLast ? `id: ${this.epoch}-${revision}\n` : ''}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
    if (events.length) stream.onText(events.map((event, n) => block(event, n === events.length - 1)).join(''))
  }

  heartbeat(stream) { this.send(stream, [{ type: 'heartbeat', data: { revision: this.revision } }], this.revision) }

  bye(stream, reason) {
    stream.onText(`event: bye\ndata: {"reason":"${reason}"}\n\n`)
    this.cut(stream)
  }

  /** Opens a stream: gives it, or a problem. Its text goes to `onText`, and its end to `onEnd`. */
  open({ id, body }, onText, onEnd) {
    const stream = { name: `s${++this.made}`, cells: new Map(), onText, onEnd }
    const cells = Object.entries(body?.cells ?? {})
    const [epoch, revision] = [id?.split('-')[0], Number(id?.split('-')[1])]
    const isResumed = epoch === this.epoch && revision <= this.revision && revision >= this.oldest
    for (const [name, each] of cells) {
      if (each.entity === 'Nowhere') return { status: 404, code: 'unknown-entity' }
      if (!isResumed && each.object && !this.state[each.object]) return { status: 404, code: 'unknown-object' }
      stream.cells.set(name, { body: each, isSeen: each.visible !== false })
    }
    this.streams.set(stream.name, stream)
    onText(`retry: 2000\nevent: open\ndata: ${JSON.stringify({ stream: stream.name, heartbeat: 15 })}\n\n`)
    if (isResumed) {
      for (let next = revision + 1; next <= this.revision; next++) this.tell(stream, next)
    } else if (id) {
      onText(`event: reset\ndata: ${JSON.stringify({ reason: epoch === this.epoch ? 'compacted' : 'epoch' })}\n\n`)
      this.tellState(stream, [...stream.cells.keys()])
    }
    return { stream }
  }

  /** `PATCH …/cells`: all of it or nothing. */
  patch(name, { cells }) {
    const stream = this.streams.get(name)
    if (!stream) return { status: 404, code: 'unknown-stream' }
    for (const [cell, body] of Object.entries(cells)) {
      if (body?.entity === 'Nowhere') return { status: 404, code: 'unknown-entity' }
      if (body === null && !stream.cells.has(cell)) return { status: 404, code: 'unknown-cell' }
      const isPart = body && !('object' in body || 'entity' in body)
      if (isPart && !stream.cells.has(cell)) return { status: 422, code: 'invalid-value' }
    }
    const begun = []
    for (const [cell, changes] of Object.entries(cells)) {
      const known = stream.cells.get(cell)
      if (changes === null) {
        stream.cells.delete(cell)
        continue
      }
      const body = { ...known?.body, ...changes }
      const isSeen = body.visible !== false
      stream.cells.set(cell, { ...known, body, isSeen })
      if (known?.isSeen && !isSeen) stream.cells.get(cell).pausedAt = this.revision
      // One that comes into sight is told the present; nothing where nothing is new.
      if (!known || (!known.isSeen && isSeen && known.pausedAt !== this.revision)) begun.push(cell)
    }
    this.tellState(stream, begun)
    return {}
  }
}
