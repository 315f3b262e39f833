import DequeModule
import HTTPServer

/// What waits to be done for clients, taken by turns: each client has a line of its own, and a hundred things of one
/// wait behind each other, not before the one of another. Without threads or locks of its own.
struct FairLine<Item> {
  private struct Client {
    var waiting: Deque<Item> = []
    /// How many were taken and have not been finished.
    var running = 0

    var count: Int { waiting.count + running }
  }

  /// The most that may wait or run, of all clients and of one.
  let limit: Int
  let clientLimit: Int
  /// The most that may run at once for one client.
  let runningLimit: Int
  private var clients: [ClientAddress: Client] = [:]
  /// The clients for which something waits, the next in turn first; each once.
  private var turns: Deque<ClientAddress> = []
  /// How many wait or run.
  private(set) var count = 0

  /// A line of nothing.
  init(limit: Int, clientLimit: Int, runningLimit: Int) {
    self.limit = limit
    self.clientLimit = clientLimit
    self.runningLimit = runningLimit
  }

  /// How many wait or run for a client.
  func count(of client: ClientAddress) -> Int { clients[client]?.count ?? 0 }

  /// Whether one more may wait for a client.
  func hasRoom(for client: ClientAddress) -> Bool { count < limit && count(of: client) < clientLimit }

  /// Adds what is to be done for a client; false where there is no room for it.
  mutating func append(_ item: Item, for client: ClientAddress) -> Bool {
    guard hasRoom(for: client) else { return false }
    if clients[client]?.waiting.isEmpty ?? true { turns.append(client) }
    clients[client, default: Client()].waiting.append(item)
    count += 1
    return true
  }

  /// Takes what is next, to be finished later; nil where nothing waits, or only for clients for which as much runs as
  /// may.
  mutating func next() -> (client: ClientAddress, item: Item)? {
    for _ in turns.indices {
      guard let client = turns.popFirst() else { return nil }
      guard var line = clients[client], line.running < runningLimit, let item = line.waiting.popFirst() else {
        turns.append(client)
        continue
      }
      line.running += 1
      if !line.waiting.isEmpty { turns.append(client) }
      clients[client] = line
      return (client, item)
    }
    return nil
  }

  /// What was taken for a client is done.
  mutating func finish(_ client: ClientAddress) {
    clients[client]?.running -= 1
    count -= 1
    forgetIfIdle(client)
  }

  /// Takes out those of the `most` oldest of a client that are no longer wanted, and gives them back.
  mutating func removeUnwanted(of client: ClientAddress, most: Int, isUnwanted: (Item) -> Bool) -> [Item] {
    guard var line = clients[client] else { return [] }
    var removed: [Item] = []
    var kept: [Item] = []
    for _ in 0..<min(most, line.waiting.count) {
      guard let item = line.waiting.popFirst() else { break }
      if isUnwanted(item) { removed.append(item) } else { kept.append(item) }
    }
    line.waiting.prepend(contentsOf: kept)
    count -= removed.count
    if line.waiting.isEmpty { turns.removeAll { $0 == client } }
    clients[client] = line
    forgetIfIdle(client)
    return removed
  }

  private mutating func forgetIfIdle(_ client: ClientAddress) {
    if clients[client]?.count == 0 { clients[client] = nil }
  }
}
