import assert from 'node:assert/strict'
import test from 'node:test'
import { Desk, KeywayProblem, applyContent } from './keyway.mjs'
import { ModelServer, randomNumbers, rowsOf } from './modelserver.mjs'
import { World } from './modelworld.mjs'

const seed = Number(process.env.KEYWAY_SEED ?? Date.now() % 1e9)
const rounds = Number(process.env.KEYWAY_ROUNDS ?? 1)
const refused = new KeywayProblem({ status: 412, type: '/v1/problems/stale-revision' })

/** A desk that is told what a test says: an observation, a cell and a query, which all show `n` of one object. */
class Page {
  bodies = {}
  desk = new Desk('t', (name, body) => { if (body) this.bodies[name] = body })
  heard = []
  updates = []
  events = []

  constructor(value, options = { options: ['old', 'new', 'initial'] }) {
    this.observation = this.desk.observe('A/1', ['n'], options, change => this.heard.push(change))
    this.cell = this.desk.cell(update => this.updates.push(update))
    this.cell.bind('A/1', ['n'])
    this.query = this.desk.query({ entity: 'A' }, event => this.events.push(event))
    const [first, second, third] = this.names
    const change = cell => ({ cell, object: 'A/1', keyPath: 'n', kind: 'setting', new: value })
    const objects = [{ '@ref': 'A/1', n: value }]
    this.take(1, [
      { type: 'change', data: { revision: 1, initial: true, changes: [change(first), change(second)] } },
      { type: 'results', data: { revision: 1, initial: true, cell: third, count: 1, objects } },
    ])
    this.value = value
    for (const list of [this.heard, this.updates, this.events]) list.length = 0
  }

  get names() { return Object.keys(this.bodies) }

  take(revision, events) {
    this.desk.take({ id: `e-${revision}`, events })
    this.desk.run()
  }

  /** A commit of a value; what an ordered to-many was done to stands in `change`. */
  commit(revision, value, writer, change = { kind: 'setting', old: this.value, new: value }) {
    const [first, second, third] = this.names
    const head = { revision, ...(writer && { writer }) }
    const changes = [first, second].map(cell => {
      const { old, ...rest } = change
      const asked = this.bodies[cell].options.includes('old') ? { old } : {}
      return { cell, object: 'A/1', keyPath: 'n', ...rest, ...asked }
    })
    const place = { object: 'A/1', index: 0, newIndex: 0 }
    const row = { type: 'update', ...place, keys: ['n'], value: { '@ref': 'A/1', n: value } }
    this.take(revision, [
      { type: 'change', data: { ...head, changes } },
      { type: 'content', data: { ...head, cell: third, count: 1, changes: [row] } },
    ])
    this.value = value
  }

  /** What each has heard: values, and what they are marked with. */
  get told() {
    const mark = ({ pending, refused: problem }) => (pending ? 'pending' : problem ? 'refused' : 'real')
    return [
      this.heard.map(each => [each.new, mark(each)]), this.updates.map(each => [each.values.n, mark(each)]),
      this.events.map(each => [each.changes[0].value.n, mark(each)]),
    ]
  }

  check(...told) {
    assert.deepEqual(this.told, [told, told, told])
    if (told.length) assert.deepEqual(this.query.rows[0].n, told.at(-1)[0])
  }
}

test('A change of another shows what is true, also where the own write is refused afterwards', () => {
  const page = new Page(1)
  const write = page.desk.begin('A/1', 'n', 50)
  page.commit(2, 7)
  page.desk.fail(write, refused)
  page.check([50, 'pending'], [7, 'real'])
  page.commit(3, 8)
  page.check([50, 'pending'], [7, 'real'], [8, 'real'])
})

test('A change of another shows what is true, and then the own write is a change as any', () => {
  const page = new Page(1)
  const write = page.desk.begin('A/1', 'n', 50)
  page.commit(2, 7)
  page.desk.settle(write, 'e-3')
  page.check([50, 'pending'], [7, 'real'])
  page.commit(3, 50, write.writer)
  page.check([50, 'pending'], [7, 'real'], [50, 'real'])
  assert.deepEqual([page.heard[2].revision, page.heard[2].writer], [3, write.writer])
})

test('A set to what shows is told when it is done, and not at all where nothing is', () => {
  const page = new Page(5)
  const write = page.desk.begin('A/1', 'n', 5)
  page.check()
  page.commit(2, 5, write.writer)
  page.desk.settle(write, 'e-2')
  page.check([5, 'real'])
  assert.equal(page.heard[0].writer, write.writer)
  page.desk.settle(page.desk.begin('A/1', 'n', 5), 'e-3')
  page.take(3, [])
  page.check([5, 'real'])
})

test('A set that nobody is notified of stays as it shows', () => {
  const page = new Page(0)
  const write = page.desk.begin('A/1', 'n', 7)
  page.desk.settle(write, 'e-2')
  page.take(2, [])
  page.check([7, 'pending'])
  page.desk.fail(page.desk.begin('A/1', 'n', 8), refused)
  page.check([7, 'pending'], [8, 'pending'], [7, 'refused'])
  page.commit(4, 9)
  page.check([7, 'pending'], [8, 'pending'], [7, 'refused'], [9, 'real'])
  // Answers that come in another order than the commits.
  const [first, second] = [page.desk.begin('A/1', 'n', 1), page.desk.begin('A/1', 'n', 2)]
  page.desk.settle(second, 'e-6')
  page.take(6, [])
  page.desk.settle(first, 'e-5')
  assert.equal(page.query.rows[0].n, 2)
  page.desk.fail(page.desk.begin('A/1', 'n', 3), refused)
  assert.deepEqual(page.told.map(told => told.at(-1)), [2, 2, 2].map(value => [value, 'refused']))
})

test('Writes that are committed in another order than they were begun end as the last commit', () => {
  const page = new Page(0)
  const [first, second] = [page.desk.begin('A/1', 'n', 1), page.desk.begin('A/1', 'n', 2)]
  page.commit(2, 2, second.writer)
  page.commit(3, 1, first.writer)
  page.desk.settle(first, 'e-3')
  page.desk.settle(second, 'e-2')
  assert.deepEqual(page.told.map(told => told.at(-1)), [1, 1, 1].map(value => [value, 'real']))
  assert.equal(page.query.rows[0].n, 1)
})

test('An answer of a former store shows no longer than the store, and one of a later store until that is told', () => {
  const page = new Page(0)
  const late = page.desk.begin('A/1', 'n', 1)
  const show = (id, n) => {
    const objects = [{ '@ref': 'A/1', n }]
    const [first, second, third] = page.names
    const changes = [first, second].map(cell => ({ cell, object: 'A/1', keyPath: 'n', kind: 'setting', new: n }))
    page.desk.take({ id, events: [
      { type: 'reset', data: { reason: 'epoch' } },
      { type: 'change', data: { initial: true, changes } },
      { type: 'results', data: { initial: true, cell: third, count: 1, objects } },
    ] })
    page.desk.run()
    page.events.length = 0
  }
  const shown = () => [page.heard.at(-1).new, page.query.rows[0].n]
  show('f-5', 3)
  page.desk.settle(late, 'e-99')
  assert.deepEqual(shown(), [3, 3])
  const early = page.desk.begin('A/1', 'n', 4)
  page.desk.settle(early, 'g-2')
  page.desk.fail(page.desk.begin('A/1', 'n', 5), refused)
  assert.deepEqual(shown(), [4, 4])
  assert.deepEqual(page.told.map(told => told.at(-1)[1]), ['refused', 'refused', 'refused'])
  show('g-3', 7)
  assert.deepEqual(shown(), [7, 7])
  page.desk.fail(page.desk.begin('A/1', 'n', 8), refused)
  assert.deepEqual(shown(), [7, 7])
})

test('What was before a pending change is what showed', () => {
  const page = new Page(1)
  const [first, second] = [page.desk.begin('A/1', 'n', 5), page.desk.begin('A/1', 'n', 6)]
  page.desk.fail(second, refused)
  page.desk.fail(first, refused)
  const pairs = [[1, 5], [5, 6], [6, 5], [5, 1]]
  assert.deepEqual(page.heard.map(each => [each.old, each.new]), pairs)
  assert.deepEqual(page.updates.map(({ changes: [each] }) => [each.old, each.new]), pairs)
})

test('An observation with priors hears what is done, and nothing ahead', () => {
  const page = new Page(1, { options: ['old', 'new', 'prior'] })
  const write = page.desk.begin('A/1', 'n', 50)
  assert.deepEqual(page.heard, [])
  const change = { cell: page.names[0], object: 'A/1', keyPath: 'n', kind: 'setting', old: 1 }
  const changes = [{ ...change, prior: true }, { ...change, new: 50 }]
  page.take(2, [{ type: 'change', data: { revision: 2, writer: write.writer, changes } }])
  page.desk.settle(write, 'e-2')
  assert.deepEqual(page.heard.map(each => [each.prior, each.old, each.new]), [[true, 1, undefined], [undefined, 1, 50]])
})

test('What is out of sight is told nothing of own writes', () => {
  const page = new Page(1)
  for (const each of [page.observation, page.cell, page.query]) each.visible = false
  page.desk.fail(page.desk.begin('A/1', 'n', 50), refused)
  const write = page.desk.begin('A/1', 'n', 60)
  page.desk.settle(write, 'e-2')
  page.take(2, [])
  page.check()
  for (const each of [page.observation, page.cell, page.query]) each.visible = true
  page.commit(2, 60)
  page.check([60, 'real'])
})

test('An unordered to-many that comes in another order is not told twice', () => {
  const page = new Page(['A/2'])
  const write = page.desk.begin('A/1', 'n', ['A/4', 'A/3'])
  page.commit(2, ['A/3', 'A/4'], write.writer)
  page.desk.settle(write, 'e-2')
  const told = [[['A/4', 'A/3'], 'pending']]
  assert.deepEqual([page.told, page.query.rows[0].n], [[told, told, told], ['A/3', 'A/4']])
})

test('What another does to a list that is written ahead is told as the list that there is', () => {
  const page = new Page(['A/2', 'A/3'])
  const write = page.desk.begin('A/1', 'n', ['A/4'])
  page.commit(2, ['A/2', 'A/5', 'A/3'], null, { kind: 'insertion', indexes: [1], new: ['A/5'] })
  page.desk.fail(write, refused)
  page.check([['A/4'], 'pending'], [['A/2', 'A/5', 'A/3'], 'real'])
  for (const change of [page.heard[1], page.updates[1].changes[0]]) {
    const { kind, indexes, old, new: value } = change
    assert.deepEqual([kind, indexes, old, value], ['setting', undefined, ['A/4'], ['A/2', 'A/5', 'A/3']])
  }
})

test('What an unordered to-many has lost is known where a write is taken back, also without `old`', () => {
  const page = new Page(['A/2', 'A/3'], { options: ['new'] })
  page.commit(2, ['A/3'], null, { kind: 'removal', old: ['A/2'] })
  page.desk.fail(page.desk.begin('A/1', 'n', []), refused)
  assert.deepEqual(page.heard.at(-1).new, ['A/3'])
  assert.ok(page.heard.every(change => !('old' in change)))
})

test('What is gone hears no more of a write', () => {
  const page = new Page(1)
  const write = page.desk.begin('A/1', 'n', 50)
  const [first, second, third] = page.names
  const content = { cell: third, count: 0, changes: [{ type: 'delete', object: 'A/1', index: 0 }] }
  page.take(2, [
    { type: 'content', data: { revision: 2, ...content } },
    ...[first, second].map(cell => ({ type: 'gone', data: { revision: 2, cell, object: 'A/1' } })),
  ])
  page.desk.fail(write, new KeywayProblem({ status: 404 }))
  assert.deepEqual([page.heard.length, page.updates.length, page.events.length], [2, 2, 2])
  assert.deepEqual([page.heard[1].gone, page.updates[1].gone, page.query.rows], [true, true, []])
  page.desk.begin('A/1', 'n', 60)
  assert.deepEqual([page.heard.length, page.updates.length, page.events.length], [2, 2, 2])
})

test('A change of another to what is written ahead is real, and stays where the own write is refused', () => {
  const page = new Page(1)
  const write = page.desk.begin('A/1', 'n', 50)
  page.commit(2, 50, 'another')
  page.desk.fail(write, refused)
  page.check([50, 'pending'], [50, 'real'])
})

/** A desk whose observers are told what a test says by the name of their present binding. */
class Told {
  bodies = []
  desk = new Desk('t', (name, body) => this.bodies.push([name, body]))

  get name() { return this.bodies.findLast(([, body]) => body)[0] }
  get names() { return this.bodies.filter(([, body]) => body).map(([name]) => name) }

  take(revision, ...events) {
    const reasons = this.desk.take({ id: `e-${revision}`, events })
    this.desk.run()
    return reasons
  }

  /** Of one cell's object the keys of `values`. */
  change(revision, values, more, cell = this.name, object = 'A/1') {
    const changes = Object.entries(values).map(([keyPath, value]) => (
      { cell, object, keyPath, kind: 'setting', new: value }))
    return { type: 'change', data: { revision, ...more, changes } }
  }
}

test('A cell is told once a commit, with all of its changes', () => {
  const told = new Told()
  const updates = []
  told.desk.cell(update => updates.push(update)).bind('A/1', ['n', 'm'])
  told.take(1, told.change(1, { n: 1, m: 2 }, { initial: true }))
  told.take(2, told.change(2, { n: 3, m: 4 }))
  assert.deepEqual(updates.map(({ values }) => values), [{ n: 1, m: 2 }, { n: 3, m: 4 }])
  assert.deepEqual(updates.map(({ changes }) => changes.length), [2, 2])
})

test('What has ended is not bound again', () => {
  const told = new Told()
  const fail = () => assert.fail('a callback after its end')
  const [cell, query] = [told.desk.cell(fail), told.desk.query({ entity: 'A' }, fail)]
  cell.end()
  query.end()
  told.bodies.length = 0
  cell.bind('A/1', ['n'])
  query.change({ entity: 'B' })
  query.visible = false
  assert.deepEqual([told.bodies, told.desk.report()], [[], []])
})

test('The same binding again is the same binding, unless its object is gone or it was refused', () => {
  const told = new Told()
  const cell = told.desk.cell(() => {})
  const bind = () => {
    const before = told.names.length
    cell.bind('A/1', ['n'])
    return told.names.length - before
  }
  assert.deepEqual([bind(), bind()], [1, 0])
  cell.visible = false
  told.bodies = [[told.name, {}]]
  assert.equal(bind(), 0)
  cell.visible = true
  told.take(1, { type: 'gone', data: { revision: 1, cell: told.name, object: 'A/1' } })
  assert.deepEqual([bind(), bind()], [1, 0])
  told.desk.refuse(told.name, refused)
  assert.deepEqual([bind(), bind()], [1, 0])
})

test('An object that is gone shows no values', () => {
  const told = new Told()
  const updates = []
  told.desk.cell(update => updates.push(update)).bind('A/1', ['n'])
  told.take(1, told.change(1, { n: 1 }, { initial: true }))
  told.take(2, { type: 'gone', data: { revision: 2, cell: told.name, object: 'A/1' } })
  assert.deepEqual(updates.map(({ values, gone }) => [values, gone]), [[{ n: 1 }, undefined], [{}, true]])
})

test('A callback that binds another cell anew keeps it from what was told of its old object', () => {
  const told = new Told()
  const updates = []
  const first = told.desk.cell(() => second.bind('A/2', ['n']))
  first.bind('A/1', ['n'])
  const second = told.desk.cell(({ object }) => updates.push(object))
  second.bind('A/1', ['n'])
  const [one, two] = told.names
  told.take(1, told.change(1, { n: 1 }, { initial: true }, one), told.change(1, { n: 1 }, { initial: true }, two))
  assert.deepEqual(updates, [])
})

test('What a cell showed of one object is nothing that it shows of the next', () => {
  const told = new Told()
  const updates = []
  const cell = told.desk.cell(update => updates.push(update))
  cell.bind('A/1', ['n'])
  told.take(1, told.change(1, { n: 1 }, { initial: true }))
  cell.bind('A/2', ['n'])
  told.desk.begin('A/2', 'n', 5)
  assert.equal(updates.length, 1, 'a write ahead of what was not told yet')
})

test('A callback that throws keeps no other from being called', () => {
  const report = globalThis.reportError
  const [errors, heard] = [[], []]
  globalThis.reportError = error => errors.push(error.message)
  try {
    const told = new Told()
    told.desk.observe('A/1', ['n'], () => { throw new Error('mine') })
    told.desk.observe('A/1', ['n'], change => heard.push(change.new))
    const [one, two] = told.names
    for (const n of [1, 2]) told.take(n, told.change(n, { n }, n === 1 && { initial: true }, one),
      told.change(n, { n }, n === 1 && { initial: true }, two))
  } finally {
    globalThis.reportError = report
  }
  assert.deepEqual([errors, heard], [['mine', 'mine'], [1, 2]])
})

test('The problem of one is told to it alone', () => {
  const told = new Told()
  const heard = [[], []]
  for (const list of heard) told.desk.cell(update => list.push(update.problem?.status)).bind('A/1', ['n'])
  told.desk.refuse(told.names[1], refused)
  assert.deepEqual(heard, [[], [412]])
})

test('After a reset the present state is told also to what did not ask for its first', () => {
  const told = new Told()
  const heard = []
  told.desk.observe('A/1', ['n'], { options: ['new'], context: 'mine' }, change => heard.push([change.new, change.context]))
  told.take(1, told.change(1, { n: 1 }, { initial: true }))
  told.take(2, told.change(2, { n: 2 }))
  assert.deepEqual(heard, [[2, 'mine']])
  assert.deepEqual(told.take(5, { type: 'reset', data: { reason: 'compacted' } }), ['compacted'])
  told.take(6, told.change(6, { n: 6 }, { initial: true }))
  assert.deepEqual(heard, [[2, 'mine'], [6, 'mine']])
})

test('An ordered to-many shows what was inserted, removed and replaced at its places', () => {
  const told = new Told()
  const shown = []
  told.desk.cell(({ values }) => shown.push(values.n)).bind('A/1', ['n'])
  told.take(1, told.change(1, { n: ['a', 'b', 'c'] }, { initial: true }))
  const list = (revision, change) => told.take(revision, { type: 'change', data: {
    revision, changes: [{ cell: told.name, object: 'A/1', keyPath: 'n', ...change }] } })
  list(2, { kind: 'insertion', indexes: [1, 3], new: ['d', 'e'] })
  assert.deepEqual(shown.at(-1), ['a', 'd', 'b', 'e', 'c'])
  list(3, { kind: 'removal', indexes: [0, 2, 4], old: ['a', 'b', 'c'] })
  assert.deepEqual(shown.at(-1), ['d', 'e'])
  list(4, { kind: 'replacement', indexes: [0, 1], old: ['d', 'e'], new: ['x', 'y'] })
  assert.deepEqual(shown.at(-1), ['x', 'y'])
})

test('An unordered to-many shows what came and what went', () => {
  const told = new Told()
  const shown = []
  told.desk.cell(({ values }) => shown.push(values.n)).bind('A/1', ['n'])
  told.take(1, told.change(1, { n: ['A/2', 'A/4'] }, { initial: true }))
  for (const [revision, change] of [
    [2, { kind: 'insertion', new: ['A/3'] }], [3, { kind: 'removal', old: ['A/2'] }],
    [4, { kind: 'replacement', old: ['A/4'], new: ['A/5'] }],
  ]) told.take(revision, { type: 'change', data: {
    revision, changes: [{ cell: told.name, object: 'A/1', keyPath: 'n', ...change }] } })
  assert.deepEqual(shown, [['A/2', 'A/4'], ['A/2', 'A/3', 'A/4'], ['A/3', 'A/4'], ['A/3', 'A/5']])
})

test('A query has what its last event says: count, total, failed, aggregates, sections with theirs', () => {
  const told = new Told()
  const events = []
  const query = told.desk.query({ entity: 'A', section: 'g' }, event => events.push(event))
  const cell = told.name
  const objects = [{ '@ref': 'A/1', g: 'x', n: 1 }]
  const section = sum => [{ name: 'x', count: 1, aggregates: { sum } }]
  const has = (total, failed, sum) => assert.deepEqual(
    [query.count, query.total, query.failed, query.aggregates, query.sections],
    [1, total, failed, { sum }, section(sum)])
  told.take(1, { type: 'results', data: { revision: 1, initial: true, cell, count: 1, total: 5, failed: 0,
    aggregates: { sum: 1 }, sections: section(1), objects } })
  has(5, 0, 1)
  // Its own write: the row shows already, and what is beside it does not.
  const write = told.desk.begin('A/1', 'n', 2)
  const changes = [{ type: 'update', object: 'A/1', index: [0, 0], newIndex: [0, 0], keys: ['n'],
    value: { '@ref': 'A/1', g: 'x', n: 2 } }]
  told.take(2, { type: 'content', data: { revision: 2, writer: write.writer, cell, count: 1, total: 6, failed: 2,
    aggregates: { sum: 2 }, sections: section(2), changes } })
  has(6, 2, 2)
  assert.deepEqual(events.map(({ pending }) => pending), [undefined, true, undefined])
})

/** What is told of the query of a list, which shows `name` alone, for what its contents say. */
function eventsOf(...contents) {
  const told = new Told()
  const seen = []
  const query = told.desk.query({ entity: 'A', sort: '-score', keys: ['name'] }, ({ type }) => (
    seen.push([type, query.rows.map(row => row['@ref'])])))
  const row = n => ({ '@ref': `A/${n}`, name: `name ${n}` })
  const head = { cell: told.name, count: 2 }
  told.take(1, { type: 'results', data: { ...head, revision: 1, objects: [row(1), row(2)] } })
  contents.forEach((content, n) => told.take(n + 2, { type: 'content', data: { ...head, revision: n + 2, ...content(row) } }))
  return seen.slice(1)
}

test('A row that moves by a key that is not shown is told to the callback', () => {
  const move = row => ({ changes: [{ type: 'move', object: 'A/2', index: 1, newIndex: 0, keys: [], value: row(2) }] })
  assert.deepEqual(eventsOf(move), [['content', ['A/2', 'A/1']]])
  // A change that names no key is no echo of a write, whatever it is.
  const update = row => ({ changes: [{ type: 'update', object: 'A/2', index: 1, newIndex: 1, keys: [], value: row(2) }] })
  assert.deepEqual(eventsOf(update), [['content', ['A/1', 'A/2']]])
})

test('What comes of an own write beside its row is told to the callback', () => {
  const told = new Told()
  const events = []
  const query = told.desk.query({ entity: 'A' }, event => events.push([event.pending, event.failed]))
  const cell = told.name
  const objects = [{ '@ref': 'A/1', n: 1 }, { '@ref': 'A/2', n: 1 }]
  told.take(1, { type: 'results', data: { revision: 1, cell, count: 2, failed: 0, objects } })
  const { writer } = told.desk.begin('A/1', 'n', 2)
  const changes = [{ type: 'update', object: 'A/1', index: 0, newIndex: 0, keys: ['n'], value: { '@ref': 'A/1', n: 2 } }]
  told.take(2, { type: 'content', data: { revision: 2, writer, cell, count: 2, failed: 1, changes } })
  assert.deepEqual(events, [[undefined, 0], [true, undefined], [undefined, 1]])
  // Where none fails, nothing says so.
  told.take(3, { type: 'content', data: { revision: 3, cell, count: 2, changes } })
  assert.equal(query.failed, 0)
})

const keyPaths = ['value', 'group', 'calm', 'note']

/** What callbacks of one page heard, and what a user has seen by them. */
class Reader {
  constructor(world, name) {
    Object.assign(this, { world, name, observations: [], cells: [], queries: [], puts: [] })
  }

  observe(object, options) {
    const seen = { object, values: {} }
    seen.handle = this.world.desk.observe(object, keyPaths, { options }, change => {
      if (change.problem) return
      if (change.gone) return (seen.isGone = true)
      assert.ok(!seen.isGone, `told of ${object} after its end`)
      const { keyPath, old, pending, refused: problem } = change
      if (pending || problem) assert.deepEqual(old, seen.values[keyPath], `what was before a change of ${keyPath}`)
      seen.values[keyPath] = change.new
    })
    this.observations.push(seen)
  }

  show(object) {
    const seen = { object }
    seen.handle = this.world.desk.cell(update => {
      assert.ok(seen.handle.visible || !update.pending, 'shown ahead out of sight')
      seen.values = update.values
      seen.isGone = update.gone
      seen.isProblem = update.problem
    })
    seen.handle.bind(object, keyPaths)
    this.cells.push(seen)
  }

  list(body) {
    const seen = { body }
    seen.handle = this.world.desk.query(body, ({ type, ...event }) => {
      if (type === 'results') [seen.rows, seen.sections] = [event.objects, event.sections]
      else Object.assign(seen, applyContent(seen.rows, seen.sections, event))
    })
    this.queries.push(seen)
  }

  put(random, isPlain) {
    const object = `A/${random.below(6)}`
    const keyPath = random.pick(isPlain && this.name === 'a' ? keyPaths : keyPaths.slice(0, 3))
    const value = keyPath === 'group' ? `g${random.below(3)}` : random.below(4)
    const { server, desk } = this.world
    this.puts.push({ write: desk.begin(object, keyPath, value), seen: server.state[object]?.[keyPath] })
  }

  /** The server takes a write, in any order; the answer comes later, or never. */
  serve(random) {
    const waiting = this.puts.filter(each => !each.answer)
    const isNote = each => each.write.keyPath === 'note'
    // Of what nobody is notified of the order is known by the answers alone: those of a page are done as they come.
    const put = random.pick(waiting.filter((each, n) => !isNote(each) || waiting.findIndex(isNote) === n))
    if (!put) return
    const { server } = this.world
    const { object, keyPath, value, writer } = put.write
    const now = server.state[object]
    const status = !now ? 404 : random.chance(0.15) ? 422 : random.chance(0.3) && now[keyPath] !== put.seen ? 412 : 200
    const isLost = keyPath !== 'note' && random.chance(0.1)
    if (status === 200 && (!isLost || random.chance(0.5))) server.commit([[object, keyPath, value]], writer)
    put.answer = { status: isLost ? 0 : status, cursor: server.id }
  }

  /** As `set` does with it. */
  answer(random) {
    const put = random.pick(this.puts.filter(each => each.answer))
    if (!put) return
    this.puts = this.puts.filter(each => each !== put)
    const { status, cursor } = put.answer
    if (status === 200) this.world.desk.settle(put.write, cursor)
    else if (status || !put.write.cursor) this.world.desk.fail(put.write, new KeywayProblem({ status }))
  }

  /** All that shows is what the server has. */
  check(context) {
    const { state } = this.world.server
    const isTold = keyPath => keyPath !== 'note' || this.name === 'a'
    const told = row => row && Object.fromEntries(Object.entries(row).filter(([key]) => key[0] !== '@' && isTold(key)))
    for (const { object, isGone, values } of this.observations) {
      if (!isGone && state[object]) assert.deepEqual(told(values), told(state[object]), `${context} ${object}`)
    }
    for (const { object, isGone, isProblem, values, handle } of this.cells) {
      if (isGone || isProblem || !state[object] || !handle.visible) continue
      assert.deepEqual(told(values), told(state[object]), `${context} cell of ${object}`)
    }
    for (const { body, handle, rows } of this.queries) {
      // A row that comes is told what nobody is notified of as it was then.
      const shown = list => list.map(row => [row['@ref'], { ...told(row), ...('min' in body && { note: 0 }) }])
      const expected = shown(rowsOf(state, body).rows)
      assert.deepEqual(shown(handle.rows), expected, `${context} rows`)
      assert.deepEqual(shown(rows), expected, `${context} events of rows`)
    }
  }
}

// A callback that throws disturbs no other: what it threw is reported, and has to be nothing.
const thrown = []
globalThis.reportError = error => thrown.push(error)

test(`Whoever writes, and whatever is refused or lost: all shows what the server has (seed ${seed})`, () => {
  for (let round = 0; round < 40 * rounds; round++) {
    const random = randomNumbers(seed + round)
    Math.random = random.next
    const server = new ModelServer()
    const readers = ['a', 'b'].map(name => new Reader(new World(random, server, name), name))
    // What nobody is notified of is known where one page writes it, and shows it from then on.
    const isPlain = random.chance(0.5)
    const bodies = [{ entity: 'A' }, { entity: 'A', sort: '-value', section: 'group' }, { entity: 'A', min: 2 },
      { entity: 'A', sort: '-value', keys: ['group'] }]
    const options = ['old', 'new', 'initial', ...(isPlain ? [] : ['prior'])]
    const begin = reader => random.pick([
      () => reader.observe(`A/${random.below(6)}`, options.slice(0, 3 + random.below(2))),
      () => reader.show(`A/${random.below(6)}`),
      () => reader.list(random.pick(bodies)),
    ])()
    for (const reader of readers) {
      for (let n = 0; n < 8; n++) begin(reader)
      if (isPlain) reader.world.settle()
      reader.world.isSettling = false
    }
    const put = reader => reader.put(random, isPlain)
    const acts = [
      put, put, put,
      reader => reader.serve(random), reader => reader.serve(random), reader => reader.serve(random),
      reader => reader.answer(random), reader => reader.answer(random), reader => reader.answer(random),
      () => server.commit([[`A/${random.below(6)}`, 'value', random.below(4)]]),
      reader => random.chance(0.1) && reader.world.cut(),
      () => random.chance(0.03) && server.restart(),
    ]
    if (!isPlain) acts.push(
      () => random.chance(0.1) && server.commit([[`A/${random.below(6)}`, 'value', undefined]]),
      reader => { const seen = random.pick(reader.cells); if (seen) seen.handle.visible = random.chance(0.7) },
      reader => random.chance(0.2) && begin(reader),
      () => random.chance(0.02) && (server.oldest = server.revision),
      () => random.chance(0.02) && server.wipe(),
    )
    for (let n = 0; n < 400; n++) {
      const reader = random.pick(readers)
      random.pick(acts)(reader)
      for (const { world } of readers) {
        if (random.chance(0.5)) world.serve()
        if (random.chance(0.6)) world.receive(1 + random.below(random.pick([200, 5000])))
        world.tick(random.below(100))
      }
    }
    const context = `seed ${seed + round}:`
    for (const reader of readers) {
      while (reader.puts.some(each => !each.answer)) reader.serve(random)
      if (random.chance(0.5)) reader.world.settle()
      while (reader.puts.length) reader.answer(random)
    }
    for (const reader of readers) reader.world.settle()
    if (thrown.length) throw new Error(`${context} ${thrown[0].stack}`)
    for (const reader of readers) reader.check(context)
  }
})
