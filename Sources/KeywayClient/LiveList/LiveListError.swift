package import KeyValueModel

/// Why an event of a live list is refused: it is not as the specification says, or it contradicts the list.
///
/// Each case begins with the place in the event, such as `content 57, changes[2]`.
package enum LiveListError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A member is missing, or is another sort of thing than it should be.
  case malformed(String, wanted: String, found: String)
  /// A `content` without `results` before it, or between `reset` and `results`.
  case contentBeforeResults(String)
  /// The event is older than what the list shows.
  case outdated(String, listRevision: Int64)
  /// There is no such row, of a section with `count` of them.
  case noRow(String, LiveIndex, count: Int)
  /// There is no such section, of `count`.
  case noSection(String, Int, count: Int)
  /// Another object than the named one stands there.
  case wrongObject(String, LiveIndex, named: Reference, found: Reference)
  /// A section of another name stands there.
  case wrongSection(String, Int, named: Value, found: Value)
  /// The object is named more than once.
  case namedTwice(String, Reference)
  /// The object is to be inserted and is in the list already.
  case alreadyListed(String, Reference)
  /// Two rows are to be placed there.
  case placedTwice(String, LiveIndex)
  /// Two sections are to be placed, or taken away, there.
  case sectionTwice(String, Int)
  /// A section goes that still has rows, or is there without any.
  case sectionRows(String, Int, name: Value, count: Int)
  /// The list has another number of rows than the event says.
  case wrongCount(String, stated: Int, found: Int)

  /// The error as a sentence.
  package var description: String {
    switch self {
    case .malformed(let place, let wanted, let found): "\(place) wants \(wanted) and is \(found)"
    case .contentBeforeResults(let place): "\(place) came before the results that it changes"
    case .outdated(let place, let revision): "\(place) is older than the list, which is of revision \(revision)"
    case .noRow(let place, let index, let count): "\(place) names row \(index) of \(count)"
    case .noSection(let place, let index, let count): "\(place) names section \(index) of \(count)"
    case .wrongObject(let place, let index, let named, let found):
      "\(place) names \(named) at \(index), where \(found) is"
    case .wrongSection(let place, let index, let named, let found):
      "\(place) names section \(named.json) at \(index), where \(found.json) is"
    case .namedTwice(let place, let reference): "\(place) names \(reference) once more"
    case .alreadyListed(let place, let reference): "\(place) inserts \(reference), which is in the list"
    case .placedTwice(let place, let index): "\(place) places a second row at \(index)"
    case .sectionTwice(let place, let index): "\(place) names section \(index) once more"
    case .sectionRows(let place, let index, let name, let count):
      "\(place): section \(name.json) at \(index) has \(count) rows"
    case .wrongCount(let place, let stated, let found):
      "\(place) says that there are \(stated) rows and there are \(found)"
    }
  }
}
