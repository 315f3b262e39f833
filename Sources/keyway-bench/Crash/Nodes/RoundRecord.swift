/// What all clients saw in one round.
struct RoundRecord: Hashable, Sendable {
  /// A write that was acknowledged.
  struct Acknowledged: Hashable, Sendable {
    var revision: Int
    /// What it left in each register.
    var leaves: [String: Int?]
    var text: String
  }

  /// A write whose outcome is not known: no answer came, or one that leaves it open.
  struct Open: Hashable, Sendable {
    var invoked: UInt64
    var parts: [RegisterRequest.Part]
    /// The value that it sets; nil for a deletion.
    var value: Int?
    var text: String

    /// What it may have done, or may do yet.
    var operations: [(register: String, operation: RegisterOperation)] {
      parts.map {
        (
          $0.register,
          RegisterOperation(invoked: invoked, answered: nil, condition: $0.condition, effect: .becomes($0.leaves))
        )
      }
    }
  }

  /// A read or a refusal, with the revision that it was judged by.
  struct Judgement: Hashable, Sendable {
    var text: String
    var register: String
    var revision: Int
    /// The newest revision that any client knew of when it was asked for, and that it must know too; 0 where it need
    /// not.
    var floor: Int
    /// What has to have held at the revision.
    var condition: RegisterOperation.Condition
    /// The value that a refused write would have set.
    var refusedValue: Int?
  }

  /// By register what happened to it, as the checker of linearizability takes it.
  var histories: [String: [RegisterOperation]] = [:]
  var acknowledged: [Acknowledged] = []
  var open: [Open] = []
  var judgements: [Judgement] = []

  /// The record of a new round, in which writes that were left open may yet be done, and reads are judged that showed
  /// more than the round before.
  init(carrying open: [Open] = [], _ judgements: [Judgement] = []) {
    (self.open, self.judgements) = (open, judgements)
    for (register, operation) in open.flatMap(\.operations) { histories[register, default: []].append(operation) }
  }

  /// Notes what happened to a register.
  mutating func note(_ register: String, _ operation: RegisterOperation) {
    histories[register, default: []].append(operation)
  }
}
