// A browser for tests, as far as keyway.js wants one: tabs that share locks and channels, and a fetch that ends at a
// ModelServer.
import { ModelServer } from './modelserver.mjs'

class Locks {
  held = []
  queue = []

  /** The locks as one tab has them. */
  of(world) {
    return { request: (...of) => this.request(world, ...of), query: () => this.query() }
  }

  request(world, name, { signal, steal }, body) {
    return new Promise((resolve, reject) => {
      const request = { world, name, body, resolve, reject }
      if (signal?.aborted) return reject(signal.reason)
      signal?.addEventListener('abort', () => {
        if (!this.queue.includes(request)) return
        this.queue = this.queue.filter(each => each !== request)
        reject(signal.reason)
      })
      if (steal) {
        for (const holder of this.held.filter(each => each.name === name)) holder.reject(new Error('stolen'))
        this.held = this.held.filter(each => each.name !== name)
        this.queue.unshift(request)
      } else {
        this.queue.push(request)
      }
      this.grant()
    })
  }

  grant() {
    for (const request of [...this.queue]) {
      if (!this.queue.includes(request) || this.held.some(each => each.name === request.name)) continue
      this.queue = this.queue.filter(each => each !== request)
      this.held.push(request)
      setTimeout(async () => {
        const answer = await request.body()
        this.release(each => each === request)
        request.resolve(answer)
      })
    }
  }

  release(isOver) {
    this.held = this.held.filter(each => !isOver(each))
    this.queue = this.queue.filter(each => !isOver(each))
    this.grant()
  }

  async query() { return { held: this.held.map(({ name }) => ({ name })) } }
}

export class Browser {
  server = new ModelServer()
  locks = new Locks()
  channels = []
  fetched = []
  isDown = false

  /** The globals of one tab. */
  tab({ isLonely = false } = {}) {
    const browser = this
    const world = new EventTarget()
    const document = Object.assign(new EventTarget(), { visibilityState: 'visible' })
    class BroadcastChannel {
      constructor(name) {
        Object.assign(this, { name, world })
        browser.channels.push(this)
      }
      postMessage(data) {
        const text = structuredClone(data)
        for (const other of browser.channels) {
          if (other === this || other.name !== this.name) continue
          setTimeout(() => {
            if (browser.channels.includes(other) && !other.world.isFrozen) other.onmessage?.({ data: text })
          })
        }
      }
      close() { browser.channels = browser.channels.filter(each => each !== this) }
    }
    Object.assign(world, { document, location: { origin: 'http://test' }, fetch: (...of) => this.fetch(world, ...of) })
    return Object.assign(world, isLonely ? {} : { BroadcastChannel, navigator: { locks: this.locks.of(world) } })
  }

  /** A tab whose process died: nothing is said, its locks are free. */
  kill(world) {
    world.isFrozen = true
    this.channels = this.channels.filter(each => each.world !== world)
    this.locks.release(each => each.world === world)
  }

  async fetch(world, url, { method, headers, body, signal }) {
    const path = url.replace('http://test', '')
    this.fetched.push({ method, url, headers })
    await new Promise(resolve => setTimeout(resolve, 1))
    if (signal?.aborted || world.isFrozen) throw new Error('aborted')
    if (this.isDown) return new Response('<h1>502</h1>', { status: 502, headers: { 'Content-Type': 'text/html' } })
    const json = body && JSON.parse(body)
    if (path === '/v1/streams' && this.isLocked) return this.answer({ status: 401, code: 'unauthenticated' })
    if (path === '/v1/streams') return this.stream(world, headers['Last-Event-ID'], json, signal)
    const [, , kind, name, ...rest] = path.split('/')
    if (kind === 'streams' && method === 'PATCH') return this.answer(this.server.patch(name, json))
    if (kind === 'streams') {
      const stream = this.server.streams.get(name)
      if (stream) this.server.cut(stream)
      return new Response(null, { status: 204 })
    }
    const object = `${name}/${rest[0]}`
    if (method === 'PUT') {
      if (json === 'refused') return this.answer({ status: 422, code: 'invalid-value', detail: 'no' })
      if (json === 'slow') await new Promise(resolve => setTimeout(resolve, 30))
      this.server.commit([[object, rest[1], json]], headers['Keyway-Writer'])
    }
    const value = rest[1] ? this.server.state[object]?.[rest[1]] : this.server.state[object]
    if (value === undefined) return this.answer({ status: 404, code: 'unknown-object' })
    // Of one who may not see all, a tag is made of what is answered.
    const tag = this.hasTagsOfContent ? `${this.server.epoch}-c${JSON.stringify(value).length}` : this.server.id
    const tags = { 'Keyway-Cursor': this.server.id, ETag: `"${tag}"` }
    return new Response(JSON.stringify(value), { status: 200, headers: tags })
  }

  answer({ status = 200, code, ...rest }) {
    const body = code ? { type: `/v1/problems/${code}`, status, ...rest } : {}
    return new Response(JSON.stringify(body), { status })
  }

  stream(world, id, body, signal) {
    let controller
    const bytes = new ReadableStream({ start: made => { controller = made } })
    const opened = this.server.open({ id, body }, text => {
      // In two pieces: a page must not show the first half of a commit.
      const whole = new TextEncoder().encode(text)
      try {
        controller.enqueue(whole.slice(0, whole.length >> 1))
        controller.enqueue(whole.slice(whole.length >> 1))
      } catch { /* nobody reads any more */ }
    }, () => { try { controller.close() } catch { /* closed already */ } })
    if (!opened.stream) return this.answer(opened)
    opened.stream.world = world
    signal.addEventListener('abort', () => {
      opened.stream.onEnd = () => {}
      this.server.cut(opened.stream)
      try { controller.error(new Error('aborted')) } catch { /* closed already */ }
    })
    return new Response(bytes, { status: 200, headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } })
  }
}

// Tests set Date.now; this waits by a clock of its own.
export async function until(condition, what) {
  for (const end = performance.now() + 300_000; !condition(); ) {
    if (performance.now() > end) throw new Error(`in vain: ${what ?? condition}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
