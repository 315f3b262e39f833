import Dispatch
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Store
import TestKit

/// A store with streams of one live query, as a server has them, but without sockets: what a commit costs until its
/// content is handed to the threads that write to sockets.
struct EmployeeStreams {
  private let store: Store
  private let hub: StreamHub
  private let employees: [Reference]

  private static let schema = "entities: {Employee: {keys: {salary: {type: integer}, name: {type: string}}}}"

  /// A store of so many employees, and so many streams of all of them by salary.
  init(employees count: Int, streams: Int) throws {
    hub = StreamHub(limits: ServerLimits(), logger: Logger(label: "bench"))
    let registry = StreamRegistry(
      hub: hub, epoch: "bench", limits: StreamLimits(), random: { UInt64.random(in: .min ... .max) })
    var limits = StoreLimits()
    limits.queuedWrites = .max
    limits.queuedWritesPerClient = .max
    let schema = try Schema(yaml: Self.schema)
    store = Store(schema: schema, epoch: "bench", limits: limits, publisher: registry)
    employees = try (0..<count).map { try Reference.numbered("Employee", $0) }
    try write(
      [
        Transaction(
          employees.enumerated().map {
            .create($1, ["salary": .integer(Int64($0)), "name": .string("Employee \($0)")])
          })
      ])
    var words = Query.Words(entity: "Employee")
    words.sort = "salary"
    words.limit = 100
    let request = QueryStreamRequest(
      query: try Query(words, in: schema), context: nil, cursor: nil, overflow: .coalesce)
    for _ in 0..<streams {
      _ = try QueryStreams(registry).open(request, in: store)
    }
  }

  /// Commits so many changes, each of which moves a row to the other end, and gives nanoseconds for each.
  func time(commits: Int) throws -> Double {
    let transactions = (0..<commits).map { change in
      let number = change * 7927 % employees.count
      let place = change / employees.count % 2 == 0 ? employees.count + number : number
      return Transaction([.set(employees[number], keyPath: "salary", .integer(Int64(place)))])
    }
    let start = MonotonicClock.now()
    try write(transactions)
    return Double(MonotonicClock.now() - start) / Double(commits)
  }

  private func write(_ transactions: [Transaction]) throws {
    let done = DispatchSemaphore(value: 0)
    for (index, transaction) in transactions.enumerated() {
      let isLast = index == transactions.count - 1
      let isTaken = store.submit(transaction) { outcome, _, _ in
        if case .failure(let error) = outcome { fatalError("a benchmark's own transaction failed: \(error)") }
        return { _ in if isLast { done.signal() } }
      }
      precondition(isTaken, "the queue of a benchmark has no limit")
    }
    done.wait()
  }
}
