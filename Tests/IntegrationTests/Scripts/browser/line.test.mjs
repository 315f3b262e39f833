import assert from 'node:assert/strict'
import test from 'node:test'
import { applyContent } from './keyway.mjs'
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
