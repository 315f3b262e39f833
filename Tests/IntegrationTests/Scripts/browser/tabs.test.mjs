import assert from 'node:assert/strict'
import test from 'node:test'
import { Browser, until } from './browser.mjs'
import { Keyway, KeywayProblem } from './keyway.mjs'

/** Tabs that each observe one object, and what they heard. */
class Tabs {
  browser = new Browser()
  server = this.browser.server
  all = []

  open(options = {}, shape) {
    const world = this.browser.tab(shape)
    const tab = { world, heard: [], resets: [], keyway: new Keyway(options, world) }
    tab.keyway.addEventListener('reset', ({ reason }) => tab.resets.push(reason))
    tab.observation = tab.keyway.observe('A/1', ['value'], change => tab.heard.push(change.new))
    this.all.push(tab)
    return tab
  }

  commit(value) { this.server.commit([['A/1', 'value', value]]) }
  get cells() { return [...this.server.streams.values()].reduce((count, stream) => count + stream.cells.size, 0) }
  close() { for (const { keyway } of this.all) keyway.close() }

  async run(body) {
    try { await body(this) } finally { this.close() }
  }
}

const scenario = (name, body) => test(name, () => new Tabs().run(body))

scenario('Tabs share one stream, and what it tells', async tabs => {
  const all = [tabs.open(), tabs.open(), tabs.open()]
  await until(() => all.every(tab => tab.heard.length === 1), 'first states')
  tabs.commit(41)
  tabs.commit(42)
  await until(() => all.every(tab => tab.heard.length === 3))
  assert.ok(all.every(tab => tab.keyway.state === 'live'))
  assert.equal(tabs.server.streams.size, 1)
  for (const tab of all) assert.deepEqual(tab.heard, [1, 41, 42])
  all[2].observation.end()
  await until(() => tabs.cells === 2, 'the cell of an ended observation ends')
  tabs.close()
  await until(() => tabs.server.streams.size === 0, 'the stream ends with its last tab')
})

for (const [name, leave] of [
  ['is closed', ({ world }) => world.dispatchEvent(new Event('pagehide'))],
  ['is frozen', ({ world }) => world.document.dispatchEvent(new Event('freeze'))],
  ['closes its Keyway', ({ keyway }) => keyway.close()],
]) {
  scenario(`When the leading tab ${name}, another goes on with what came meanwhile`, async tabs => {
    const first = tabs.open()
    await until(() => first.heard.length === 1)
    const others = [tabs.open(), tabs.open()]
    await until(() => others.every(tab => tab.heard.length === 1))
    leave(first)
    tabs.commit(5)
    await until(() => others.every(tab => tab.heard.length === 2), 'the change of meanwhile')
    tabs.commit(6)
    await until(() => others.every(tab => tab.heard.length === 3))
    for (const tab of others) assert.deepEqual([tab.heard, tab.resets, tab.keyway.state], [[1, 5, 6], [], 'live'])
    assert.equal(tabs.server.streams.size, 1)
    await until(() => tabs.cells === 2, 'the cells of the tab that left end')
  })
}

for (const [name, leave] of [
  ['is left', (_, { world }) => world.dispatchEvent(new Event('pagehide'))],
  ['dies without a word', ({ browser }, { world }) => browser.kill(world)],
]) {
  scenario(`The cells of a tab that ${name} end`, async tabs => {
    const all = [tabs.open(), tabs.open(), tabs.open()]
    await until(() => all.every(tab => tab.heard.length === 1) && tabs.cells === 3)
    leave(tabs, all[2])
    await until(() => tabs.cells === 2, 'cells of a tab that is gone')
    tabs.commit(4)
    await until(() => all[0].heard.length === 2 && all[1].heard.length === 2)
    assert.equal(tabs.server.streams.size, 1)
  })
}

scenario('A Keyway whose leader was closed is not: it can be left, and come back', async tabs => {
  const world = tabs.browser.tab()
  const closing = new Keyway({}, world)
  closing.observe('A/1', ['value'], () => {})
  await until(() => closing.state === 'live')
  const states = []
  const tab = tabs.open()
  tab.keyway.addEventListener('state', () => states.push(tab.keyway.state))
  await until(() => tab.heard.length === 1)
  closing.close()
  assert.equal(closing.state, 'closed')
  tabs.commit(2)
  await until(() => tab.heard.length === 2)
  await until(() => tab.keyway.state === 'live')
  assert.ok(!states.includes('closed'))
  tab.world.dispatchEvent(new Event('pagehide'))
  tabs.commit(3)
  tab.world.dispatchEvent(new Event('pageshow'))
  await until(() => tab.heard.length === 3)
  assert.deepEqual([tab.heard, tab.keyway.state], [[1, 2, 3], 'live'])
})

scenario('A frozen tab comes back to its present state', async tabs => {
  const [first, second] = [tabs.open(), tabs.open()]
  await until(() => first.heard.length === 1 && second.heard.length === 1)
  first.world.document.dispatchEvent(new Event('freeze'))
  await until(() => tabs.server.streams.size === 1 && tabs.cells === 1)
  tabs.commit(7)
  await until(() => second.heard.length === 2)
  assert.deepEqual(first.heard, [1])
  first.world.document.dispatchEvent(new Event('resume'))
  await until(() => first.heard.length === 2)
  assert.deepEqual([first.heard, first.resets], [[1, 7], ['away']])
  tabs.commit(8)
  await until(() => first.heard.length === 3 && second.heard.length === 3)
  assert.deepEqual([first.heard, second.heard, second.resets], [[1, 7, 8], [1, 7, 8], []])
})

scenario('A page that was kept for Back hears what it missed, where it is alone', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length === 1)
  tab.world.dispatchEvent(new Event('pagehide'))
  await until(() => tabs.server.streams.size === 0, 'its cells end')
  tabs.commit(2)
  tabs.commit(3)
  assert.deepEqual(tab.heard, [1])
  tab.world.dispatchEvent(new Event('pageshow'))
  await until(() => tab.heard.length === 3)
  assert.deepEqual([tab.heard, tab.resets], [[1, 2, 3], []])
})

scenario('A leader that hangs loses the lead to a tab that is seen', async tabs => {
  const [first, second] = [tabs.open(), tabs.open()]
  await until(() => first.heard.length === 1 && second.heard.length === 1)
  const clock = Date.now
  first.world.isFrozen = true
  const stuck = [...tabs.server.streams.values()][0]
  stuck.onText = () => {}
  Date.now = () => clock() + 60_000
  try {
    tabs.commit(9)
    await until(() => second.heard.length === 2)
  } finally {
    Date.now = clock
  }
  assert.deepEqual(second.heard.at(-1), 9)
})

scenario('Without locks and channels each tab has its own stream', async tabs => {
  const all = [tabs.open({}, { isLonely: true }), tabs.open({}, { isLonely: true })]
  await until(() => all.every(tab => tab.heard.length === 1))
  assert.equal(tabs.server.streams.size, 2)
})

scenario('Tabs of different people share nothing, and no token is in a URL', async tabs => {
  const token = sub => `e30.${btoa(JSON.stringify({ sub }))}.x`
  const all = [tabs.open({ token: () => token('ann') }), tabs.open({ token: () => token('bob') })]
  await until(() => all.every(tab => tab.heard.length === 1))
  assert.equal(tabs.server.streams.size, 2)
  await all[0].keyway.get('A/1')
  for (const { url, headers } of tabs.browser.fetched) {
    assert.ok(!url.includes('e30'))
    assert.match(headers.Authorization, /^Bearer e30\./)
  }
})

scenario('A server that is down for a while is come back to', async tabs => {
  const tab = tabs.open()
  const states = []
  tab.keyway.addEventListener('state', () => states.push(tab.keyway.state))
  await until(() => tab.heard.length === 1)
  tabs.browser.isDown = true
  tabs.server.restart()
  await until(() => tab.keyway.state === 'waiting')
  tabs.commit(2)
  await new Promise(resolve => setTimeout(resolve, 600))
  tabs.browser.isDown = false
  await until(() => tab.heard.length === 2)
  assert.deepEqual([tab.heard, tab.resets, states.at(-1)], [[1, 2], [], 'live'])
})

scenario('An own write is shown at once and its echo is not shown again', async tabs => {
  const tab = tabs.open()
  const [updates, events] = [[], []]
  const cell = tab.keyway.cell(update => updates.push(update))
  cell.bind('A/1', ['value'])
  const query = tab.keyway.query({ entity: 'A', sort: 'group', section: 'group' }, event => events.push(event))
  await until(() => tab.heard.length && updates.length && events.length)
  const written = tab.keyway.set('A/1', 'value', 77)
  assert.equal(tab.heard.at(-1), 77)
  assert.deepEqual([updates.at(-1).values, updates.at(-1).pending], [{ value: 77 }, true])
  assert.equal(query.rows.find(row => row['@ref'] === 'A/1').value, 77)
  assert.equal(await written, 77)
  tabs.commit(78)
  await until(() => tab.heard.length > 2)
  assert.deepEqual(tab.heard, [1, 77, 78])
  assert.deepEqual(updates.map(({ values }) => values.value), [1, 77, 78])
  assert.equal(events.length, 3)
  assert.equal(query.rows.find(row => row['@ref'] === 'A/1').value, 78)
})

scenario('A write that is refused is taken back, with its problem', async tabs => {
  const tab = tabs.open()
  const updates = []
  const query = tab.keyway.query({ entity: 'A' }, () => {})
  tab.keyway.cell(update => updates.push(update)).bind('A/1', ['value'])
  await until(() => updates.length && tab.heard.length && query.count)
  const shown = () => query.rows.find(row => row['@ref'] === 'A/1').value
  const refused = tab.keyway.set('A/1', 'value', 'refused')
  assert.equal(shown(), 'refused')
  await assert.rejects(refused, problem => problem instanceof KeywayProblem && problem.code === 'invalid-value')
  assert.deepEqual(updates.map(({ values }) => values.value), [1, 'refused', 1])
  assert.equal(updates[2].refused.status, 422)
  assert.deepEqual([tab.heard, shown()], [[1, 'refused', 1], 1])
})

scenario('The change of another on top of an own write is shown, and then the own one', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const written = tab.keyway.set('A/1', 'value', 'slow')
  await new Promise(resolve => setTimeout(resolve, 10))
  tabs.commit(5)
  await written
  await until(() => tab.heard.length === 4)
  assert.deepEqual(tab.heard, [1, 'slow', 5, 'slow'])
})

scenario('What cannot be bound is told to its callback alone', async tabs => {
  const { keyway } = tabs.open()
  const told = []
  const good = Array.from({ length: 20 }, (_, n) => {
    const cell = keyway.cell(update => told.push(update))
    cell.bind(`A/${n % 6}`, ['value'])
    return cell
  })
  const problems = []
  const bad = keyway.query({ entity: 'Nowhere' }, event => problems.push(event))
  const gone = []
  keyway.cell(update => gone.push(update)).bind('A/99', ['value'])
  await until(() => told.length === 20 && problems.length && gone.length)
  assert.ok(problems[0].problem instanceof KeywayProblem)
  assert.equal(problems[0].problem.code, 'unknown-entity')
  assert.deepEqual([gone[0].gone, gone[0].values], [true, {}])
  bad.change({ entity: 'A' })
  await until(() => bad.count === 6)
  assert.equal(good.length, 20)
})

scenario('After its end no callback runs, from inside one neither', async tabs => {
  const { keyway } = tabs.open()
  const heard = []
  const observations = [0, 1].map(n => keyway.observe('A/2', ['value'], ({ new: value }) => {
    heard.push([n, value])
    if (value === 50) for (const observation of observations) observation.end()
  }))
  await until(() => heard.length === 2)
  tabs.server.commit([['A/2', 'value', 50], ['A/2', 'group', 'x']])
  tabs.server.commit([['A/2', 'value', 51]])
  await until(() => tabs.cells === 1)
  assert.equal(heard.length, 3)
})

scenario('The bindings of a frame are one request', async tabs => {
  const { keyway } = tabs.open()
  await until(() => keyway.state === 'live')
  const before = tabs.browser.fetched.length
  const told = []
  for (let n = 0; n < 300; n++) keyway.cell(update => told.push(update)).bind(`A/${n % 6}`, ['value'])
  await until(() => told.length === 300)
  assert.ok(tabs.browser.fetched.length - before <= 2)
})

scenario('The tag of what is observed is that of what was told', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  tabs.commit(3)
  await until(() => tab.heard.length === 2)
  assert.equal(await tab.keyway.etag('A/1', 'value'), `"${tabs.server.id}"`)
  const told = tabs.server.id
  tabs.server.commit([['A/2', 'value', 9]])
  await tab.keyway.get('A/2')
  assert.equal(await tab.keyway.etag('A/2'), `"${tabs.server.id}"`)
  assert.equal(await tab.keyway.etag('A/1', 'value'), `"${told}"`)
})

scenario('What is observed has the tag of what was told, also where answers have tags of content', async tabs => {
  tabs.browser.hasTagsOfContent = true
  const tab = tabs.open()
  await tab.keyway.get('A/1', 'value')
  assert.match(await tab.keyway.etag('A/1', 'value'), /-c1"$/)
  await until(() => tab.heard.length)
  tabs.commit(3)
  await until(() => tab.heard.length === 2)
  assert.equal(await tab.keyway.etag('A/1', 'value'), `"${tabs.server.id}"`)
  // What was answered after what was told is newer.
  const [stream] = tabs.server.streams.values()
  stream.onText = () => {}
  tabs.commit(4)
  await tab.keyway.get('A/1', 'value')
  assert.match(await tab.keyway.etag('A/1', 'value'), /-c1"$/)
})

for (const [name, token] of [['without a token', undefined], ['with a bad token', () => 'e30.e30.x']]) {
  scenario(`A page ${name} is told so once, and comes in when it may`, async tabs => {
    tabs.browser.isLocked = true
    const all = [tabs.open({ token }), tabs.open({ token })]
    const events = []
    const elsewhere = all.map(({ keyway }) => keyway.query({ entity: 'A' }, event => events.push(event)))
    const problems = []
    const [{ keyway }] = all
    keyway.cell(update => problems.push(update.problem ?? update.values.value)).bind('A/1', ['value'])
    await until(() => problems.length && events.length === 2, 'the problem')
    const opened = () => tabs.browser.fetched.filter(({ url }) => url.endsWith('/v1/streams')).length
    const before = opened()
    await until(() => opened() >= before + 4, 'another try')
    assert.equal(problems.length, 1)
    assert.ok(problems[0] instanceof KeywayProblem)
    assert.deepEqual([problems[0].status, problems[0].code], [401, 'unauthenticated'])
    assert.ok(events.length === 2 && events.every(event => event.problem?.status === 401))
    // What is bound meanwhile is told at the next try.
    const late = []
    keyway.observe('A/2', ['value'], change => late.push(change.problem?.status ?? change.new))
    await until(() => late.length, 'the problem of what was bound late', 20_000)
    tabs.browser.isLocked = false
    for (const tab of all) tab.world.dispatchEvent(new Event('online'))
    const isBack = () => problems.length === 2 && late.length === 2 && events.length === 4 && all[1].heard.length === 2
    await until(isBack, 'the present state', 20_000)
    assert.deepEqual([problems[1], late, all[1].heard], [1, [401, 2], [undefined, 1]])
    assert.deepEqual(elsewhere.map(({ count }) => count), [6, 6])
    // Heard again, told again.
    tabs.browser.isLocked = true
    tabs.server.restart()
    await until(() => problems.length === 3)
    assert.equal(problems[2].status, 401)
    const changes = []
    keyway.observe('A/3', ['value'], { options: ['new'] }, change => changes.push(change.new))
    tabs.browser.isLocked = false
    for (const tab of all) tab.world.dispatchEvent(new Event('online'))
    const isThere = () => problems.length === 4 && events.length === 8 && late.length === 4 && all[1].heard.length === 4
    await until(isThere, 'the present state again')
    assert.deepEqual([problems[3], late, all[1].heard], [1, [401, 2, 401, 2], [undefined, 1, undefined, 1]])
    tabs.server.commit([['A/1', 'value', 5], ['A/3', 'value', 6]])
    await until(() => problems.length === 5 && changes.includes(6) && all[1].heard.length === 5, 'a change')
    assert.deepEqual([problems[4], changes.at(-1), all[1].heard.at(-1)], [5, 6, 5])
  })
}
