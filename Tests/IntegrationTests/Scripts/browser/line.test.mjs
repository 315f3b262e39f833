import assert from 'node:assert/strict'
import test from 'node:test'
import { KeywayProblem, Line, applyContent } from './keyway.mjs'
import { contentBetween, randomNumbers, rowsOf } from './modelserver.mjs'
import { World } from './modelworld.mjs'

const seed = Number(process.env.KEYWAY_SEED ?? Date.now() % 1e9)
const rounds = Number(process.env.KEYWAY_ROUNDS ?? 1)

/** What an observer of one object heard, held against what was committed. */
class Witness {
  constructor(world, object) {
    this.world = world
    this.object = object
    this.heard = []
    this.handle = world.desk.observe(object, ['value'], { options: ['new', 'initial'] }, change => {
      assert.ok(!this.isEnded, 'a callback after its end')
      this.heard.push(change)
      this.check(change)
    })
    world.witnesses.push(this)
  }

  check(change) {
    const { server } = this.world
    if (this.mayRestart && (change.initial || change.gone)) {
      this.last = change.revision
      this.mayRestart = false
      return
    }
    // What a store that was wiped meanwhile had still sent can't be looked up any more.
    if (change.gone || change.problem || this.mayRestart) return
    if (change.initial) {
      assert.equal(this.last, undefined, 'a second first state')
    } else {
      // Exactly the next change of the key, none left out and none told again.
      assert.deepEqual([change.revision, change.new], this.next()[0], 'a change was missed or told twice')
      const rest = this.next().filter(([revision]) => revision === change.revision)
      this.part = rest.length > 1 ? change.revision : undefined
    }
    if (change.initial) assert.equal(change.new, server.states.get(change.revision)[this.object].value)
    this.last = change.revision
  }

  /** The commits that it has to hear yet. */
  next() {
    const after = []
    for (let revision = this.last + 1; revision <= this.world.server.revision; revision++) {
      for (const each of this.world.server.commits.get(revision)?.operations ?? []) {
        if (each.object === this.object && each.isGone) return after
        if (each.object === this.object && each.keyPath === 'value') after.push([revision, each.new])
      }
    }
    return after
  }
}

// A callback that throws disturbs no other: what it threw is reported, and has to be nothing.
const thrown = []
globalThis.reportError = error => thrown.push(error)

test(`What is told is what was committed, over cuts, restarts and wiped stores (seed ${seed})`, () => {
  for (let round = 0; round < 12 * rounds; round++) {
    const random = randomNumbers(seed + round)
    // The client's own randomness is when it tries again.
    Math.random = random.next
    const world = new World(random)
    const { server, desk } = world
    world.witnesses = []
    world.onReset = () => {
      world.resets = []
      for (const witness of world.witnesses) witness.mayRestart = witness.last !== undefined
    }
    const cells = []
    const queries = []
    const bodies = [{ entity: 'A' }, { entity: 'A', sort: '-value', section: 'group' }, { entity: 'A', min: 5 }]
    const checkRows = (query, revision) => {
      const expected = rowsOf(server.states.get(revision), query.body)
      assert.deepEqual(query.handle.rows, expected.rows, `rows at ${revision}`)
      assert.deepEqual(query.handle.sections, expected.sections)
      assert.equal(query.handle.count, expected.rows.length)
    }
    const object = () => `A/${random.below(9)}`
    const commit = () => {
      const values = Array.from({ length: 1 + random.below(3) }, () => [object(), ...random.chance(0.1)
        ? ['value', undefined] : random.pick([['value', random.below(30)], ['group', `g${random.below(4)}`]])])
      // One object and key once in a commit keeps the oracle simple.
      server.commit(values.filter(([ref], n) => values.findIndex(([other]) => other === ref) === n))
    }
    const acts = [
      commit, commit, commit, commit, commit,
      () => {
        const next = `A/${world.witnesses.length % 9}`
        if (server.state[next] && world.witnesses.length < 20) new Witness(world, next)
      },
      () => {
        const witness = random.pick(world.witnesses)
        if (!witness || random.chance(0.7)) return
        witness.handle.end()
        witness.isEnded = true
      },
      () => {
        const cell = { log: [] }
        cell.handle = desk.cell(update => {
          assert.equal(update.object ?? cell.object, cell.object, 'an update of an older binding')
          cell.update = update
        })
        cell.object = object()
        cell.handle.bind(cell.object, ['value', 'group'])
        cells.push(cell)
      },
      () => {
        const cell = random.pick(cells)
        const next = random.chance(0.2) ? null : object()
        if (!cell || next === cell.object) return
        cell.object = next
        cell.update = undefined
        cell.handle.bind(cell.object, ['value', 'group'])
      },
      () => { const cell = random.pick(cells); if (cell) cell.handle.visible = random.chance(0.6) },
      () => {
        const query = { body: random.pick(bodies) }
        query.handle = desk.query(query.body, event => {
          assert.ok(!query.isEnded)
          query.isHeard = true
          const isPresent = world.line.id?.startsWith(server.epoch + '-')
          if (isPresent && server.states.has(event.revision)) checkRows(query, event.revision)
        })
        queries.push(query)
      },
      () => {
        const query = random.pick(queries)
        if (query && random.chance(0.3)) {
          query.handle.end()
          query.isEnded = true
        } else if (query) {
          query.body = random.pick(bodies)
          query.handle.change({ min: null, sort: null, section: null, ...query.body })
        }
      },
      () => desk.query({ entity: 'Nowhere' }, event => assert.ok(event.problem)),
      () => world.tick(random.below(2000)),
      () => random.chance(0.5) && world.cut(),
      () => random.chance(0.1) && server.restart(),
      () => (world.isDown = random.chance(0.2)),
      () => {
        if (random.chance(0.02)) server.wipe()
        if (random.chance(0.02)) server.oldest = server.revision
      },
      () => random.chance(0.2) && [...server.streams.values()].forEach(stream => server.bye(stream, 'lifetime')),
    ]
    let epoch = server.epoch
    for (let n = 0; n < 300; n++) {
      random.pick(acts)()
      if (server.epoch !== epoch) {
        // What was told of a store that is no more can't be looked up any longer.
        epoch = server.epoch
        for (const witness of world.witnesses) witness.mayRestart = true
      }
      if (random.chance(0.7)) world.serve()
      if (random.chance(0.7)) world.receive(1 + random.below(random.pick([200, 5000])))
      world.tick(random.below(100))
    }
    world.settle()
    const context = `seed ${seed + round}`
    if (thrown.length) throw new Error(`${context}: ${thrown[0].message}`)
    for (const witness of world.witnesses) {
      if (witness.isEnded || witness.last === undefined) continue
      if (witness.heard.at(-1).gone || !server.state[witness.object]) continue
      assert.deepEqual(witness.next(), [], `${context}: ${witness.object} was not told all`)
    }
    for (const cell of cells.filter(each => each.handle.visible && each.object)) {
      assert.ok(cell.update, `${context}: a cell was told nothing`)
      if (cell.update.gone) continue
      const { value, group } = server.state[cell.object] ?? {}
      assert.deepEqual(cell.update.values, { value, group }, `${context}: ${cell.object}`)
    }
    for (const query of queries.filter(each => !each.isEnded)) {
      assert.ok(query.isHeard, `${context}: a query was told nothing`)
      checkRows(query, server.revision)
    }
    // What has ended is bound nowhere, and what is bound is what is observed.
    const bound = [...server.streams.values()].flatMap(stream => [...stream.cells.keys()])
    assert.equal(server.streams.size, 1, context)
    const wanted = desk.report().map(([name]) => name)
    assert.deepEqual(bound.filter(name => !wanted.includes(name)).filter(name => !isGone(server, name)), [], context)
    assert.deepEqual(wanted.filter(name => !bound.includes(name)), [], context)
  }
})

/** A cell whose object is gone stays bound to nothing until its page ends it. */
function isGone(server, name) {
  return [...server.streams.values()].some(stream => stream.cells.get(name)?.body.object)
}

test(`A content makes the list before it the list after it (seed ${seed})`, () => {
  const random = randomNumbers(seed)
  for (let round = 0; round < 500 * rounds; round++) {
    const refs = Array.from({ length: 12 }, (_, n) => `A/${n}`)
    const state = () => Object.fromEntries(refs.filter(() => random.chance(0.7))
      .map(ref => [ref, { '@ref': ref, value: random.below(9), group: `g${random.below(4)}` }]))
    const query = { entity: 'A', section: random.chance(0.5) ? 'group' : undefined }
    const [before, after] = [rowsOf(state(), query), rowsOf(state(), query)]
    const { rows, sections } = applyContent(before.rows, before.sections, contentBetween(before, after))
    assert.deepEqual(rows, after.rows)
    assert.deepEqual(sections, after.sections)
  }
})

/** A line alone, with a clock of its own: what it is told, and what it does. */
class Alone {
  line = new Line()
  now = 0

  constructor() { this.step({ type: 'start' }) }
  step(event) { return this.line.step(event, this.now) }
  say(text) { return this.step({ type: 'bytes', bytes: new TextEncoder().encode(text) }) }
  open(heartbeat = 15) { return this.say(`event: open\ndata: {"stream":"s","heartbeat":${heartbeat}}\n\n`) }
  get wait() { return this.line.deadline - this.now }

  /** How long it waits before each of some tries. */
  waits(count, lose) {
    return Array.from({ length: count }, () => {
      lose()
      const { wait } = this
      this.now += wait
      this.step({ type: 'tick' })
      return wait
    })
  }

  /** What is sent of cells that are wanted now. */
  want(...cells) {
    for (const [name, body] of cells) this.step({ type: 'want', name, body })
    this.now += 16
    return this.sent(this.step({ type: 'tick' }))
  }

  sent(actions) { return actions.filter(action => action.do === 'send').map(({ body }) => Object.keys(body.cells)) }
}

const away = new KeywayProblem({ status: 502, code: 'http-502' })
const isRising = waits => waits.every((wait, n) => wait >= 125 * 2 ** n && wait <= 250 * 2 ** n)

test('A line that is lost is tried again later each time, half a minute at most, and soon after it was heard', () => {
  for (const [name, lose] of [
    ['refused', alone => alone.step({ type: 'lost', problem: away })],
    ['opened, and ended at once', alone => {
      alone.open()
      alone.say('event: bye\ndata: {"reason":"drain"}\n\n')
    }],
  ]) {
    const alone = new Alone()
    const waits = alone.waits(12, () => lose(alone))
    assert.ok(isRising(waits.slice(0, 7)), `${name}: ${waits}`)
    assert.ok(waits.slice(7).every(wait => wait >= 15_000 && wait <= 30_000), `${name}: ${waits}`)
  }
  const heard = new Alone()
  heard.waits(6, () => heard.step({ type: 'lost', problem: away }))
  heard.open()
  heard.say('id: e-1\nevent: heartbeat\ndata: {}\n\n')
  assert.ok(isRising(heard.waits(3, () => heard.step({ type: 'lost' }))))
})

test('Lines that are lost at once come back at different times, and not before they may', () => {
  const waits = Array.from({ length: 100 }, () => {
    const alone = new Alone()
    return alone.waits(5, () => alone.step({ type: 'lost', problem: away })).at(-1)
  })
  assert.ok(new Set(waits.map(Math.round)).size > 10, 'no two clients alike')
  const alone = new Alone()
  alone.step({ type: 'lost', problem: new KeywayProblem({ status: 503, code: 'overloaded', retryAfter: 120 }) })
  assert.ok(alone.wait >= 120_000)
})

test('A line that says nothing is lost after two of the heartbeats that the server named', () => {
  const alone = new Alone()
  assert.equal(alone.wait, 15_000, 'an answer that does not come')
  alone.open(2)
  alone.step({ type: 'tick' })
  alone.now += 4400
  assert.deepEqual(alone.step({ type: 'tick' }), [])
  alone.now += 200
  assert.ok(alone.step({ type: 'tick' }).some(action => action.do === 'abort'))
  assert.equal(alone.line.state, 'waiting')
})

test('A line that waits tries at once when it is woken', () => {
  const alone = new Alone()
  alone.waits(8, () => alone.step({ type: 'lost', problem: away }))
  alone.step({ type: 'lost', problem: away })
  assert.equal(alone.line.state, 'waiting')
  assert.ok(alone.step({ type: 'wake' }).some(action => action.do === 'open'))
})

test('A server that does not know the stream is asked for another', () => {
  const alone = new Alone()
  alone.open()
  alone.want(['a', { object: 'A/1' }])
  alone.step({ type: 'answer', problem: new KeywayProblem({ status: 404, code: 'unknown-stream' }) })
  assert.equal(alone.line.state, 'waiting')
})

test('Cells are sent again where the server was away, in the same order, one request at a time', () => {
  const alone = new Alone()
  alone.open()
  assert.deepEqual(alone.want(['a', { object: 'A/1' }]), [['a']])
  assert.deepEqual(alone.want(['b', { object: 'A/2' }]), [], 'before the answer to the first')
  const actions = alone.step({ type: 'answer', problem: away })
  assert.ok(!actions.some(action => action.do === 'refuse'), 'a 502 refuses nothing')
  alone.now += 300
  assert.deepEqual(alone.sent(alone.step({ type: 'tick' })), [['a']])
  assert.deepEqual(alone.sent(alone.step({ type: 'answer' })), [['b']])
})

test('Many cells are sent in several requests, none of them large', () => {
  const alone = new Alone()
  alone.open()
  const sizes = []
  const names = []
  let sent = alone.step({ type: 'tick' })
  for (let n = 0; n < 2000; n++) {
    alone.step({ type: 'want', name: `c${n}`, body: { entity: 'A', filter: 'x'.repeat(1000) } })
  }
  alone.now += 16
  for (sent = alone.step({ type: 'tick' }); sent.length; sent = alone.step({ type: 'answer' })) {
    sizes.push(JSON.stringify(sent[0].body).length)
    names.push(...Object.keys(sent[0].body.cells))
  }
  assert.equal(names.length, 2000)
  assert.ok(Math.max(...sizes) < 500_000, `${sizes}`)
})

test('A cell too many is told to the one that wanted it, and not tried for ever', () => {
  const alone = new Alone()
  alone.open()
  alone.want(['a', { object: 'A/1' }])
  const problem = new KeywayProblem({ status: 429, code: 'too-many-cells' })
  const [refused] = alone.step({ type: 'answer', problem })
  assert.deepEqual([refused.do, refused.name, refused.problem.code], ['refuse', 'a', 'too-many-cells'])
})

test('The cell of an object that is gone is not gone on with', () => {
  const alone = new Alone()
  alone.open()
  alone.want(['a', { object: 'A/1' }], ['b', { object: 'A/2' }])
  alone.step({ type: 'answer' })
  const change = cell => ({ cell, keyPath: 'n', kind: 'setting', new: 1 })
  alone.say(`id: e-1\nevent: change\ndata: ${JSON.stringify({ changes: [change('a'), change('b')] })}\n\n`)
  alone.say('id: e-2\nevent: gone\ndata: {"cell":"a"}\n\n')
  alone.step({ type: 'lost' })
  alone.now += alone.wait
  const open = alone.step({ type: 'tick' }).find(action => action.do === 'open')
  assert.deepEqual([open.id, Object.keys(open.body.cells)], ['e-2', ['b']])
})

test('What an older attempt still says counts no more', () => {
  const alone = new Alone()
  alone.step({ type: 'lost', problem: away })
  alone.now += alone.wait
  const { attempt } = alone.step({ type: 'tick' }).find(action => action.do === 'open')
  assert.deepEqual(alone.step({ type: 'lost', attempt: attempt - 1 }), [])
  const bytes = new TextEncoder().encode('event: open\ndata: {"stream":"old"}\n\n')
  assert.deepEqual(alone.step({ type: 'bytes', attempt: attempt - 1, bytes }), [])
  assert.equal(alone.line.state, 'connecting')
})

test(`Changes of a content may come in any order (seed ${seed})`, () => {
  const random = randomNumbers(seed)
  for (let round = 0; round < 200; round++) {
    const state = () => Object.fromEntries(Array.from({ length: 10 }, (_, n) => `A/${n}`).filter(() => random.chance(0.7))
      .map(ref => [ref, { '@ref': ref, value: random.below(9), group: `g${random.below(4)}` }]))
    const query = { entity: 'A', section: random.chance(0.5) ? 'group' : undefined }
    const [before, after] = [rowsOf(state(), query), rowsOf(state(), query)]
    const content = contentBetween(before, after)
    content.changes.sort(() => random.next() - 0.5)
    assert.deepEqual(applyContent(before.rows, before.sections, content).rows, after.rows)
  }
})
