/// What one client did to one register, and when: one line of a history that `Linearizability` judges.
///
/// A register holds a value or is absent. Each write sets a value of its own, so a condition on the version of a
/// register is one on its value.
struct RegisterOperation: Hashable, Sendable {
  /// What a register holds; nil where it is absent.
  typealias State = Int?

  /// What has to hold of the register at the moment when an operation takes effect.
  enum Condition: Hashable, Sendable {
    case always
    /// It holds just this, or is absent.
    case isState(State)
    /// It holds something else than this value, or is absent.
    case isNot(Int)
    /// It holds something else than this value.
    case isOther(Int)
    case isPresent

    /// The value that has to be there; nil where it may be any, or none.
    var value: Int? { if case .isState(let value) = self { value } else { nil } }

    /// Whether it holds of a register in this state.
    func holds(of state: State) -> Bool {
      switch self {
      case .always: true
      case .isState(let wanted): state == wanted
      case .isNot(let value): state != value
      case .isOther(let value): state != nil && state != value
      case .isPresent: state != nil
      }
    }
  }

  /// What an operation makes of the register.
  enum Effect: Hashable, Sendable {
    /// Reads and refusals.
    case none
    case becomes(State)

    /// The state after it.
    func applied(to state: State) -> State {
      switch self {
      case .none: state
      case .becomes(let next): next
      }
    }
  }

  /// When it was asked for, in nanoseconds of some clock that all clients share.
  var invoked: UInt64
  /// When its answer was there; nil where none came: then it may be done at any later time, or never.
  var answered: UInt64?
  /// What has to hold when it takes effect: for a success what the request demanded, for a read what was read, for a
  /// refusal what justifies it.
  var condition: Condition
  var effect: Effect
}
