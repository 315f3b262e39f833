// The console: a page like that of any application, on keyway.js. The address says what is shown.
import { Keyway } from '/keyway.js'
import { CreateView } from './create.js'
import { element, setText } from './elements.js'
import { EntityView } from './entity.js'
import { JournalView } from './journal.js'
import { MessageView } from './message.js'
import { ObjectView } from './object.js'
import { readSchema } from './schema.js'
import { readRights, readSession, SessionView, signOut } from './session.js'
import { EntityList } from './sidebar.js'
import { StatusView } from './status.js'
import { StreamView } from './stream.js'

const main = document.getElementById('main')
const connection = document.getElementById('connection')
const sessionBox = document.getElementById('session')
const states = { connecting: 'connecting', live: 'live', waiting: 'waiting for the server', closed: 'closed' }

const context = { keyway: null, schema: new Map(), restart, isAdmin: false, mayReadStatus: false }
let view = null
let list = null
let isSignedIn = false

/** Starts again, because another identity may see other things. */
function restart(address) {
  context.keyway?.close()
  if (location.hash !== address) history.replaceState(null, '', address)
  location.reload()
}

async function begin() {
  const session = await readSession()
  let problem = session.problem
  if (!problem) {
    try {
      context.schema = await readSchema()
    } catch (error) {
      problem = error
    }
  }
  if (problem) {
    showSession(session)
    show(problem.status === 401 || problem.status === 403
      ? new SessionView(context, {}, problem) : new MessageView('The server does not answer', problem))
    return
  }
  await showRights()
  showSession(session)
  context.keyway = new Keyway()
  context.keyway.addEventListener('state', showConnection)
  showConnection()
  list = new EntityList(context)
  document.getElementById('entities').replaceChildren(list.node)
  addEventListener('hashchange', route)
  route()
}

function showConnection() {
  const { state } = context.keyway
  setText(connection, states[state])
  connection.dataset.state = state
  if (state === 'waiting') checkSession()
}

/** A stream that was cut may mean that the session is over: then it is time to sign in again. */
async function checkSession() {
  const session = await readSession()
  const hasEnded = isSignedIn && !session.problem && !session.identity
  if (!(hasEnded || session.problem?.status === 401) || view instanceof SessionView) return
  await showRights()
  showSession(session)
  show(new SessionView(context, {}, session.problem ?? new Error('The session has ended. Sign in again.')))
}

/** An admin without a session has nothing to sign in to: the server has no keys. */
function showSession({ identity }) {
  isSignedIn = Boolean(identity)
  sessionBox.replaceChildren(...(identity
    ? [element('span', { class: 'identity' }, String(identity.sub)),
      element('button', { type: 'button', click: leave }, 'Sign out')]
    : context.isAdmin ? [] : [element('a', { class: 'button', href: '#/session' }, 'Sign in')]))
}

/** Does not offer what the server would refuse. */
async function showRights() {
  Object.assign(context, await readRights())
  for (const [address, isShown] of [['#/journal', context.isAdmin], ['#/status', context.mayReadStatus]]) {
    document.querySelector(`header nav a[href="${address}"]`).hidden = !isShown
  }
}

async function leave() {
  try {
    await signOut()
    restart('#/')
  } catch (error) {
    show(new MessageView('Sign out', error))
  }
}

/** The parts of the address: `#/objects/Airport/SFO?filter=…`. */
function readAddress() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  const decode = part => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  }
  return { parts: path.split('/').filter(part => part !== '').map(decode), parameters: new URLSearchParams(query) }
}

function route() {
  const { parts: [kind, name, id], parameters } = readAddress()
  const entity = context.schema.get(name)
  if (view instanceof EntityView && kind === 'objects' && entity === view.entity && !id) view.update(parameters)
  else show(makeView(kind, entity, name, id, parameters))
}

function makeView(kind, entity, name, id, parameters) {
  const place = { entity, parameters }
  if (kind === 'objects' && entity && id) return new ObjectView(context, { ...place, reference: `${name}/${id}` })
  if (kind === 'objects' && entity) return new EntityView(context, place)
  if (kind === 'new' && entity) return new CreateView(context, place)
  if (kind === 'journal' && context.isAdmin) return new JournalView()
  if (kind === 'stream') return new StreamView(context, place)
  if (kind === 'status' && context.mayReadStatus) return new StatusView()
  if (kind === 'session') return new SessionView(context)
  if (kind !== undefined) return new MessageView(...missing(kind, name), null, { '#/': 'To the start' })
  const others = context.isAdmin ? ' Journal, Stream and Status look at the server.' : ''
  return new MessageView('Keyway', null, context.schema.size > 0
    ? `Choose an entity to see its objects, live.${others}` : 'The schema has no entities.')
}

/** The title, and the reason why there is no content. */
function missing(kind, name) {
  if (kind === 'journal' || kind === 'status') {
    const title = kind === 'journal' ? 'Journal' : 'Status'
    return [title, new Error(`The ${kind} is for admins, and you are not signed in as one.`)]
  }
  const isEntity = (kind === 'objects' || kind === 'new') && name
  return ['Not found', new Error(isEntity
    ? `The schema has no entity '${name}'.` : 'The console has nothing at this address.')]
}

function show(next) {
  const isFirst = view === null
  view?.end()
  view = next
  main.replaceChildren(next.node)
  document.title = next.title === 'Keyway' ? 'Keyway' : `${next.title} – Keyway`
  list?.mark(next.entity?.name)
  for (const link of document.querySelectorAll('header nav a')) {
    if (location.hash.startsWith(link.hash)) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  // Users of the keyboard or a screen reader continue where the new content begins.
  if (!isFirst) main.querySelector('h1')?.focus()
  scrollTo(0, 0)
}

begin()
