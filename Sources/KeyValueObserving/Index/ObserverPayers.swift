/// The clients that pay for evaluating what observers observe.
struct ObserverPayers: Sendable {
  /// By observer, each client with the number of its streams.
  private var counts: [ObserverID: [QueryPayer: Int]] = [:]

  /// Nobody pays for anything.
  init() {}

  /// True if nobody pays for anything.
  var isEmpty: Bool { counts.isEmpty }

  /// The clients that pay for an observer: at least one, which is `unknown` where none was charged.
  subscript(observer: ObserverID) -> [QueryPayer] { counts[observer].map { Array($0.keys) } ?? [.unknown] }

  /// Charges a client for an observer, once more for each of its streams.
  mutating func charge(_ observer: ObserverID, to payer: QueryPayer) {
    counts[observer, default: [:]][payer, default: 0] += 1
  }

  /// Takes back one such charge; nothing where there is none.
  mutating func discharge(_ observer: ObserverID, of payer: QueryPayer) {
    guard let count = counts[observer]?[payer] else { return }
    counts[observer]?[payer] = count > 1 ? count - 1 : nil
    if counts[observer]?.isEmpty == true { counts[observer] = nil }
  }
}
