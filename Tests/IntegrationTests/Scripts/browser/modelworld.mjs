import { Desk, KeywayProblem, Line } from './keyway.mjs'
import { ModelServer } from './modelserver.mjs'

/** A page, a network and a server in one thread, with a clock of its own. */
export class World {
  now = 1_000_000
  requests = []
  resets = []
  // Bytes that are on their way to the page.
  wire = []
  connection = 0
  isDown = false

  constructor(random, server = new ModelServer(), tab = 't') {
    Object.assign(this, { random, server })
    this.line = new Line()
    this.desk = new Desk(tab, (name, body) => this.step({ type: 'want', name, body }))
    this.step({ type: 'start' })
  }

  step(event) { for (const action of this.line.step(event, this.now)) this.perform(action) }

  perform({ do: kind, ...action }) {
    if (kind === 'open') this.requests.push({ kind, ...action })
    if (kind === 'send') this.requests.push({ kind, ...action })
    if (kind === 'abort') {
      this.wire = []
      this.requests = this.requests.filter(request => request.kind !== 'open')
      this.drop()
    }
    if (kind === 'deliver') {
      for (const reason of this.desk.take(action.commit)) this.resets.push(reason)
      if (this.resets.length) this.onReset?.()
      this.desk.run()
    }
    if (kind === 'refuse') this.desk.refuse(action.name, action.problem)
  }

  /** The server takes the oldest request. */
  serve() {
    const request = this.requests.shift()
    if (!request) return
    const { attempt } = request
    const refuse = problem => new KeywayProblem({ ...problem, type: `/v1/problems/${problem.code}` })
    if (request.kind === 'open') {
      const connection = ++this.connection
      if (this.isDown) return this.wire.push({ connection, attempt, end: refuse({ status: 502, code: 'http-502' }) })
      const text = more => {
        for (const byte of new TextEncoder().encode(more)) this.wire.push({ connection, attempt, byte })
      }
      const end = () => this.wire.push({ connection, attempt, end: true })
      const { status, code, stream } = this.server.open(request, text, end)
      if (stream) stream.world = this
      else this.wire.push({ connection, attempt, end: refuse({ status, code }) })
    } else if (this.isDown || (!this.isSettling && this.random.chance(0.05))) {
      const isDone = !this.isDown && this.random.chance(0.5)
      if (isDone) this.server.patch(request.path.split('/')[3], request.body)
      this.step({ type: 'answer', attempt, problem: new KeywayProblem({ code: 'unreachable' }) })
    } else {
      const answer = this.server.patch(request.path.split('/')[3], request.body)
      this.step({ type: 'answer', attempt, problem: answer.code && refuse(answer) })
    }
  }

  /** Some bytes arrive, cut anywhere. */
  receive(count) {
    while (count > 0 && this.wire.length) {
      const { connection, attempt, end } = this.wire[0]
      if (end) {
        this.wire.shift()
        this.step({ type: 'lost', attempt, problem: end === true ? undefined : end })
        continue
      }
      const bytes = []
      while (count-- > 0 && this.wire[0]?.byte !== undefined && this.wire[0].connection === connection) {
        bytes.push(this.wire.shift().byte)
      }
      this.step({ type: 'bytes', attempt, bytes: Uint8Array.from(bytes) })
    }
  }

  /** The network drops what is on its way; the client hears of it now, or by the heartbeats that don't come. */
  cut() {
    const { attempt, connection } = this.wire[0] ?? {}
    this.wire = []
    this.drop()
    if (connection && this.random.chance(0.5)) this.step({ type: 'lost', attempt })
  }

  drop() {
    for (const stream of [...this.server.streams.values()].filter(each => each.world === this)) {
      stream.onEnd = () => {}
      this.server.cut(stream)
    }
  }

  tick(milliseconds) {
    this.now += milliseconds
    this.step({ type: 'tick' })
  }

  /** Until all is told. */
  settle() {
    this.isDown = false
    this.isSettling = true
    for (let n = 0; n < 400; n++) {
      while (this.requests.length) this.serve()
      this.receive(Infinity)
      this.tick(n % 40 === 10 ? 40_000 : 200)
      if (n % 20 === 5) for (const stream of this.server.streams.values()) this.server.heartbeat(stream)
    }
  }
}
