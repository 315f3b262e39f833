/// The objects that a commit touched, each once, as they stood before it.
public struct TouchedObjects: RandomAccessCollection, Sendable {
  /// An object with its record before the commit; nil where it was not there.
  public typealias Element = (object: Reference, record: ObjectRecord?)

  private enum Contents: Sendable {
    case one(PlainSetting)
    case list([Element])
  }

  private let contents: Contents

  init(_ setting: PlainSetting) { contents = .one(setting) }

  init(_ list: [Element]) { contents = .list(list) }

  /// Where the first one is.
  public var startIndex: Int { 0 }

  /// Behind the last one.
  public var endIndex: Int {
    switch contents {
    case .one: 1
    case .list(let list): list.count
    }
  }

  /// One of them.
  public subscript(index: Int) -> Element {
    switch contents {
    case .one(let setting):
      precondition(index == 0, "there is one object")
      return (setting.object, setting.before)
    case .list(let list): return list[index]
    }
  }
}
