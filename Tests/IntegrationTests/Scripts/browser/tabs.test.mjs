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
    await until(() => late.length, 'the problem of what was bound late')
    tabs.browser.isLocked = false
    for (const tab of all) tab.world.dispatchEvent(new Event('online'))
    const isBack = () => problems.length === 2 && late.length === 2 && events.length === 4 && all[1].heard.length === 2
    await until(isBack, 'the present state')
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

const token = sub => `e30.${btoa(JSON.stringify({ sub }))}.x`
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** What a tab asks for from here on; `answer` may answer in the server's place. */
function requests(world, answer = () => undefined) {
  const { fetch } = world
  const list = []
  world.fetch = async (url, options) => {
    list.push({ url, path: new URL(url).pathname, ...options })
    return await answer(list.at(-1), () => fetch(url, options)) ?? fetch(url, options)
  }
  return list
}

scenario('A page that is left ends its stream with its token in the header, by a request that outlives it', async tabs => {
  const tab = tabs.open({ token: () => token('ann') })
  await until(() => tab.heard.length)
  const asked = requests(tab.world)
  tab.world.dispatchEvent(new Event('pagehide'))
  await until(() => tabs.server.streams.size === 0)
  const [{ method, url, headers, keepalive }] = asked
  assert.deepEqual([method, keepalive, headers.Authorization], ['DELETE', true, `Bearer ${token('ann')}`])
  assert.ok(!url.includes('e30'))
})

scenario('The token is asked for before each request, and once more after a 401', async tabs => {
  let count = 0
  const tab = tabs.open({ token: () => `e30.${btoa('{"sub":"ann"}')}.${++count}` })
  await until(() => tab.heard.length)
  const asked = requests(tab.world, ({ headers }) => (
    headers.Authorization.endsWith(`.${first}`) ? new Response('{}', { status: 401 }) : undefined))
  const first = count + 1
  assert.equal((await tab.keyway.get('A/2')).value, 2)
  await tab.keyway.get('A/3')
  assert.deepEqual(asked.map(({ headers }) => Number(headers.Authorization.split('.')[2])), [first, first + 1, first + 2])
})

scenario('Without a token the cookie goes with each request, and tabs of one person share a stream', async tabs => {
  const world = tabs.browser.tab()
  const asked = requests(world)
  const keyway = new Keyway({}, world)
  tabs.all.push({ keyway })
  keyway.observe('A/1', ['value'], () => {})
  await until(() => keyway.state === 'live')
  await keyway.get('A/1')
  assert.ok(asked.length >= 3 && asked.every(({ credentials }) => credentials === 'include'))
  let count = 0
  const of = () => `e30.${btoa('{"sub":"ann"}')}.${++count}`
  const all = [tabs.open({ token: of }), tabs.open({ token: of })]
  await until(() => all.every(tab => tab.heard.length))
  assert.equal(tabs.server.streams.size, 2)
})

scenario('When there is no token any more, what is observed is received anew, after a reset', async tabs => {
  let user = 'ann'
  const tab = tabs.open({ token: () => user && token(user) })
  await until(() => tab.heard.length === 1)
  user = undefined
  await tab.keyway.get('A/3')
  await until(() => tab.heard.length === 2)
  assert.deepEqual([tab.heard, tab.resets], [[1, 1], ['identity']])
})

scenario('When a session has ended, all is told anew after a reset; a token that is renewed resumes', async tabs => {
  const [visitor, user] = [tabs.open(), tabs.open({ token: () => token('ann') })]
  await until(() => visitor.heard.length === 1 && user.heard.length === 1)
  for (const stream of [...tabs.server.streams.values()]) tabs.server.bye(stream, 'expired')
  await until(() => visitor.heard.length === 2)
  assert.deepEqual([visitor.heard, visitor.resets], [[1, 1], ['identity']])
  tabs.commit(5)
  await until(() => visitor.heard.length === 3 && user.heard.length === 2)
  assert.deepEqual([user.heard, user.resets], [[1, 5], []])
})

scenario('When the token is someone else\'s, what is observed is told anew, after a reset', async tabs => {
  let sub = 'ann'
  const [tab, other] = [tabs.open({ token: () => token(sub) }), tabs.open({ token: () => token('ann') })]
  await until(() => tab.heard.length === 1 && other.heard.length === 1)
  const order = []
  tab.keyway.addEventListener('reset', ({ reason }) => order.push(reason))
  tab.keyway.cell(({ values }) => order.push(values.value)).bind('A/2', ['value'])
  await until(() => order.length === 1)
  sub = 'bob'
  await tab.keyway.get('A/3')
  await until(() => tab.heard.length === 2)
  assert.deepEqual([tab.heard, tab.resets, order], [[1, 1], ['identity'], [2, 'identity', 2]])
  assert.equal(tabs.server.streams.size, 2)
  tabs.commit(5)
  await until(() => tab.heard.length === 3 && other.heard.length === 2)
  assert.deepEqual([other.heard, other.resets], [[1, 5], []])
})

scenario('A reset is told before the states that come of it, in each tab', async tabs => {
  const all = [tabs.open(), tabs.open()]
  const order = all.map(({ keyway }) => {
    const list = []
    keyway.addEventListener('reset', ({ reason }) => list.push(reason))
    keyway.observe('A/2', ['value'], change => list.push(change.new))
    return list
  })
  await until(() => order.every(list => list.length === 1))
  tabs.server.wipe()
  await until(() => order.every(list => list.length === 3))
  for (const list of order) assert.deepEqual(list, [2, 'epoch', 2])
})

for (const [name, begin] of [
  ['that lacks what was observed', tabs => {
    tabs.server.commit([['A/9', 'value', 1]])
    return tabs.all.map(({ keyway }) => keyway.observe('A/9', ['value'], () => {}))
  }],
  ['while all is out of sight', tabs => tabs.all.map(({ observation }) => (observation.visible = false))],
]) {
  scenario(`Another store ${name} is a reset for another epoch, once`, async tabs => {
    const all = [tabs.open(), tabs.open()]
    await until(() => all.every(tab => tab.heard.length === 1))
    begin(tabs)
    await pause(50)
    tabs.server.wipe()
    await until(() => tabs.server.streams.size === 1, 'a stream')
    for (const stream of tabs.server.streams.values()) tabs.server.heartbeat(stream)
    await until(() => all.every(tab => tab.resets.length && tab.keyway.state === 'live'), 'resets')
    for (const tab of all) tab.observation.visible = true
    await until(() => all.every(tab => tab.heard.length === 2), 'the present state')
    for (const tab of all) assert.deepEqual([tab.heard, tab.resets], [[1, 1], ['epoch']])
  })
}

scenario('What may not be gone on with, of the same store, is a reset as if it were forgotten', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length === 1)
  const asked = requests(tab.world, ({ method, path }) => method === 'POST' && path === '/v1/streams'
    ? tabs.browser.answer({ status: 403, code: 'forbidden' }) : undefined)
  tabs.server.restart()
  await until(() => tab.heard.length === 2)
  assert.deepEqual([tab.heard, tab.resets, asked.length > 1], [[1, 1], ['compacted'], true])
})

scenario('The pages of two servers share nothing', async tabs => {
  const tab = tabs.open()
  const world = tabs.browser.tab()
  const { fetch } = world
  world.fetch = (url, options) => fetch(url.replace('http://other', 'http://test'), options)
  const heard = []
  const keyway = new Keyway({ url: 'http://other/' }, world)
  tabs.all.push({ keyway })
  keyway.observe('A/1', ['value'], change => heard.push(change.new))
  await until(() => tab.heard.length && heard.length)
  assert.equal(tabs.server.streams.size, 2)
})

scenario('What a tab says that does not lead is not heard', async tabs => {
  const all = [tabs.open(), tabs.open()]
  await until(() => all.every(tab => tab.heard.length === 1 && tab.keyway.state === 'live'))
  const [{ name }] = tabs.browser.channels
  new (tabs.browser.tab().BroadcastChannel)(name).postMessage({ from: 'nobody', state: 'connecting', heartbeat: 15,
    commit: { id: 'e1-99', events: [{ type: 'reset', data: { reason: 'epoch' } }] } })
  await pause(30)
  for (const tab of all) assert.deepEqual([tab.resets, tab.keyway.state], [[], 'live'])
})

scenario('All tabs know the state of the connection', async tabs => {
  const all = [tabs.open(), tabs.open()]
  await until(() => all.every(tab => tab.heard.length === 1))
  tabs.browser.isDown = true
  tabs.server.restart()
  await until(() => all.every(tab => tab.keyway.state === 'waiting'))
  tabs.browser.isDown = false
  await until(() => all.every(tab => tab.keyway.state === 'live'))
})

scenario('A leader that was robbed of the lead leads no more', async tabs => {
  const [first, second] = [tabs.open(), tabs.open()]
  await until(() => first.heard.length === 1 && second.heard.length === 1)
  const clock = Date.now
  // For a while the first can't be heard.
  tabs.browser.channels.find(each => each.world === first.world).postMessage = () => {}
  const asked = requests(second.world)
  Date.now = () => clock() + 46_000
  try { await until(() => asked.length && second.keyway.state === 'live') } finally { Date.now = clock }
  tabs.commit(9)
  await until(() => first.heard.at(-1) === 9 && second.heard.at(-1) === 9)
  await until(() => tabs.server.streams.size === 1, 'one stream')
  tabs.commit(10)
  await until(() => first.heard.at(-1) === 10 && second.heard.at(-1) === 10)
  for (const { heard } of [first, second]) assert.equal(heard.filter(value => value === 10).length, 1)
})

scenario('A leader that has to wait for long keeps the lead, and a tab that is hidden takes it from none', async tabs => {
  const [first, second, third] = [tabs.open(), tabs.open(), tabs.open()]
  await until(() => tabs.all.every(tab => tab.heard.length === 1))
  third.world.document.visibilityState = 'hidden'
  const later = () => new Response('{}', { status: 503, headers: { 'Retry-After': '600' } })
  const asked = tabs.all.map(({ world }) => requests(world, later))
  tabs.server.restart()
  await until(() => asked[0].length === 1 && second.keyway.state === 'waiting')
  const clock = Date.now
  let ahead = 0
  Date.now = () => clock() + ahead
  try {
    for (let n = 0; n < 3; n++) {
      ahead += 25_000
      await pause(5300)
    }
    assert.deepEqual(asked.map(list => list.length), [1, 0, 0])
    // Now it hangs.
    for (const { world } of [first, second]) world.isFrozen = true
    for (const channel of tabs.browser.channels) if (channel.world !== third.world) channel.postMessage = () => {}
    ahead += 60_000
    await pause(2500)
    assert.equal(asked[2].length, 0)
  } finally {
    Date.now = clock
  }
})

scenario('After a sleep of the machine a stream that died meanwhile is noticed soon', async tabs => {
  const tab = tabs.open({}, { isLonely: true })
  await until(() => tab.heard.length)
  const stuck = [...tabs.server.streams.values()][0]
  stuck.onText = () => {}
  tabs.commit(2)
  const clock = Date.now
  Date.now = () => clock() + 60_000
  try { await until(() => tab.heard.length === 2, 'the change of meanwhile') } finally { Date.now = clock }
  assert.deepEqual(tab.heard, [1, 2])
})

scenario('A page whose network is back, or that is seen again, does not wait', async tabs => {
  for (const wake of [
    ({ world }) => world.dispatchEvent(new Event('online')),
    ({ world }) => world.document.dispatchEvent(new Event('visibilitychange')),
  ]) {
    const [first, second] = [tabs.open(), tabs.open()]
    await until(() => first.heard.length === 1 && second.heard.length === 1)
    const asked = requests(first.world, () => (
      asked.length === 1 ? new Response('{}', { status: 503, headers: { 'Retry-After': '60' } }) : undefined))
    tabs.server.restart()
    await until(() => asked.length === 1 && first.keyway.state === 'waiting' && second.keyway.state === 'waiting')
    wake(second)
    await until(() => first.keyway.state === 'live' && second.keyway.state === 'live')
    for (const tab of [first, second]) {
      tab.keyway.close()
      assert.deepEqual(tab.heard, [1])
    }
  }
})

scenario('A binding that meets a 502 is tried again, and its request may not take for ever', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const asked = requests(tab.world)
  tabs.browser.isDown = true
  const told = []
  tab.keyway.cell(update => told.push(update.problem ?? update.values.value)).bind('A/2', ['value'])
  await until(() => asked.length === 2)
  tabs.browser.isDown = false
  await until(() => told.length)
  assert.deepEqual(told, [2])
  assert.ok(asked.every(({ signal }) => signal instanceof AbortSignal))
})

scenario('What is out of sight is told nothing, and in sight again what there is, also where it was bound so', async tabs => {
  const { keyway } = tabs.open()
  const told = [[], [], []]
  const cells = told.map(list => keyway.cell(({ values }) => list.push(values.value)))
  cells[0].visible = false
  for (const cell of cells) cell.bind('A/2', ['value'])
  await until(() => told[1].length && told[2].length)
  cells[1].visible = false
  const seen = () => [...[...tabs.server.streams.values()][0].cells.values()].filter(({ isSeen }) => isSeen)
  await until(() => seen().length === 2)
  tabs.server.commit([['A/2', 'value', 5]])
  await until(() => told[2].length === 2)
  assert.deepEqual(told, [[], [2], [2, 5]])
  // After a cut what is out of sight has missed the same.
  tabs.server.restart()
  await until(() => keyway.state === 'live' && tabs.server.streams.size === 1 && tabs.cells === 4)
  for (const cell of cells) cell.visible = true
  await until(() => told[0].length && told[1].length === 2)
  tabs.server.commit([['A/2', 'value', 6]])
  await until(() => told.every(list => list.at(-1) === 6))
  assert.deepEqual(told, [[5, 6], [2, 5, 6], [2, 5, 6]])
})

scenario('What is not in sight has the tag of the last answer; what the page does not know is asked for', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  await tab.keyway.get('A/1', 'value')
  const answered = `"${tabs.server.id}"`
  tab.observation.visible = false
  tabs.commit(2)
  tab.keyway.observe('A/2', ['value'], () => {})
  await until(() => tabs.cells === 2)
  await pause(30)
  assert.equal(await tab.keyway.etag('A/1', 'value'), answered)
  const asked = requests(tab.world, ({ method }) => method === 'DELETE' ? new Response(null, { status: 204 }) : undefined)
  tabs.server.commit([['A/5', 'value', 9]])
  assert.equal(await tab.keyway.etag('A/4'), `"${tabs.server.id}"`)
  assert.deepEqual(asked.map(({ path }) => path), ['/v1/objects/A/4'])
  // An own write is an answer, and what is deleted is known no more.
  await tab.keyway.set('A/3', 'value', 4)
  assert.equal(await tab.keyway.etag('A/3', 'value'), `"${tabs.server.id}"`)
  assert.equal(await tab.keyway.delete('A/4'), undefined)
  await tab.keyway.etag('A/4')
  const paths = ['A/4', 'A/3/value', 'A/4', 'A/4'].map(path => '/v1/objects/' + path)
  assert.deepEqual(asked.map(({ path }) => path), paths)
})

scenario('Options of a write are headers, and names are escaped', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const asked = requests(tab.world, () => new Response('1', { status: 200 }))
  await tab.keyway.set('A/a b', 'value', 1, { ifMatch: tab.keyway.etag('A/1', 'value'), lifetime: 30 })
  const [{ url, headers }] = asked
  assert.ok(url.endsWith('/v1/objects/A/a%20b/value'))
  assert.deepEqual([headers['If-Match'], headers['Keyway-Lifetime']], [`"${tabs.server.id}"`, 30])
})

scenario('Reads, and what has a key, are tried again where the server is away, and writes are not', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const asked = requests(tab.world, () => asked.length % 2 ? new Response('<h1>', { status: 502 }) : new Response('{}'))
  await tab.keyway.get('A/2')
  assert.equal(asked.length, 2)
  await tab.keyway.create('A', {})
  assert.equal(asked.length, 4)
  const keys = asked.slice(2).map(({ headers }) => headers['Idempotency-Key'])
  assert.ok(keys[0] && keys[0] === keys[1])
  for (const write of [
    () => tab.keyway.set('A/2', 'value', 1), () => tab.keyway.patch('A/2', {}), () => tab.keyway.delete('A/2'),
  ]) {
    const before = asked.length
    await assert.rejects(write(), problem => problem.status === 502)
    assert.equal(asked.length, before + 1)
    asked.push({})
  }
})

scenario('Where no answer comes the problem says so plainly, and why', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const lost = new TypeError('Failed to fetch')
  let answer = () => { throw lost }
  requests(tab.world, () => answer())
  const told = async () => {
    const problem = await tab.keyway.set('A/1', 'value', 5).then(() => assert.fail('it was written'), error => error)
    assert.ok(problem instanceof KeywayProblem)
    assert.deepEqual([problem.status, tab.heard.at(-1)], [0, 1], 'the value is taken back')
    return [problem.code, problem.detail, problem.cause?.name]
  }
  const unreachable = ['unreachable', 'The server cannot be reached.']
  assert.deepEqual(await told(), [...unreachable, 'TypeError'])
  tab.world.navigator.onLine = false
  assert.deepEqual(await told(), ['offline', 'This device is offline.', 'TypeError'])
  tab.world.navigator.onLine = true
  // Something on the way that answers for the server is not the server, whatever it says.
  answer = () => new Response('<h1>Welcome to our hotel</h1>')
  assert.deepEqual(await told(), [...unreachable, 'SyntaxError'])
})

scenario('Where there is no token the problem says why, and nothing that is observed ends', async tabs => {
  let fail = () => {}
  const tab = tabs.open({ token: () => fail() ?? token('ann') })
  await until(() => tab.heard.length)
  fail = () => { throw new Error('sign in first') }
  const told = []
  tab.keyway.observe('A/2', ['value'], change => told.push(change.problem?.code ?? change.new))
  await assert.rejects(tab.keyway.set('A/1', 'value', 5), ({ status, code, detail }) => (
    status === 0 && code === 'no-token' && detail === 'The page has no token: sign in first'))
  await pause(100)
  fail = () => {}
  await until(() => told.length)
  assert.deepEqual(told, [2])
})

scenario('What is no JSON is the mistake of the page, told at once', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  const asked = requests(tab.world)
  const value = {}
  value.self = value
  await assert.rejects(tab.keyway.create('A', value), TypeError)
  assert.equal(asked.length, 0)
})

scenario('A write of which half of the answer was lost is done', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  requests(tab.world, async ({ method }, go) => {
    if (method !== 'PUT') return
    const { headers } = await go()
    return new Response('"fi', { headers })
  })
  assert.equal(await tab.keyway.set('A/1', 'value', 'five'), 'five')
  assert.deepEqual(tab.heard, [1, 'five'])
})

scenario('A write of which only the answer was lost is done', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  requests(tab.world, async ({ method }, go) => {
    if (method !== 'PUT') return
    await go()
    tabs.server.commit([['A/5', 'value', 1]])
    await pause(30)
    throw new TypeError('network error')
  })
  assert.equal(await tab.keyway.set('A/1', 'value', 5), 5)
  assert.deepEqual(tab.heard, [1, 5])
})

scenario('What is closed calls nothing back, not of own writes either, and does not come back', async tabs => {
  const tab = tabs.open()
  await until(() => tab.heard.length)
  tab.keyway.close()
  await tab.keyway.set('A/1', 'value', 5)
  for (const name of ['pageshow', 'online']) tab.world.dispatchEvent(new Event(name))
  tab.world.document.dispatchEvent(new Event('resume'))
  await pause(50)
  tabs.commit(6)
  await pause(20)
  assert.deepEqual([tab.heard, tab.keyway.state, tabs.server.streams.size], [[1], 'closed', 0])
})

scenario('What is bound and ended while the lead changes hands is bound and ended', async tabs => {
  const all = [tabs.open(), tabs.open(), tabs.open()]
  await until(() => all.every(tab => tab.heard.length === 1))
  const [leader, , tab] = all
  const ending = Array.from({ length: 40 }, () => tab.keyway.observe('A/2', ['value'], () => {}))
  await until(() => tabs.cells === 43)
  leader.keyway.close()
  const told = []
  for (let n = 0; n < 40; n++) {
    told[n] = 0
    tab.keyway.observe('A/3', ['value'], () => told[n]++)
    ending[n].end()
    await pause(2)
  }
  await until(() => tab.keyway.state === 'live' && told.every(Boolean), 'what was bound meanwhile')
  await until(() => tabs.cells === 42, 'what ended meanwhile')
})

scenario('What is out of sight while a page is left is told its present state when it is seen', async tabs => {
  const tab = tabs.open()
  const shown = []
  const cell = tab.keyway.cell(({ values }) => shown.push(values.value))
  cell.bind('A/2', ['value'])
  await until(() => shown.length && tab.heard.length)
  cell.visible = false
  await until(() => [...[...tabs.server.streams.values()][0].cells.values()].some(({ isSeen }) => !isSeen))
  tabs.server.commit([['A/1', 'value', 5], ['A/2', 'value', 6]])
  await until(() => tab.heard.length === 2)
  tab.world.dispatchEvent(new Event('pagehide'))
  const asked = requests(tab.world)
  tab.world.dispatchEvent(new Event('pageshow'))
  await until(() => tab.keyway.state === 'live')
  // A stream that goes on from an id takes what it is given for told until then, also what is out of sight.
  const { body } = asked.find(({ path, method }) => method === 'POST' && path === '/v1/streams')
  assert.deepEqual(Object.values(JSON.parse(body).cells).filter(({ visible }) => visible === false), [])
})
