package import KeyValueModel

/// One block of an event stream, as it stands on the wire and taken apart.
package struct WireEvent: Equatable {
  /// The lines of the block, without the empty one.
  package let lines: [String]

  /// The block as the specification shows it.
  package var text: String { lines.joined(separator: "\n") }

  /// The reconnection time in milliseconds: the field `retry`.
  package var retry: String? { field("retry") }

  /// The id that a client resumes from: the field `id`.
  package var id: String? { field("id") }

  /// The type: the field `event`.
  package var name: String? { field("event") }

  /// The data, of one line: the field `data`.
  package var data: String? { field("data") }

  /// The data as JSON; null where it is none.
  package var json: Value { data.flatMap { try? Value(json: $0) } ?? .null }

  /// The changes of a `change`.
  package var changes: [Value] { json["changes"].items }

  /// The block without its `retry` line, which is jittered.
  package var withoutRetry: WireEvent { WireEvent(lines: lines.filter { !$0.hasPrefix("retry:") }) }

  private func field(_ name: String) -> String? {
    lines.first { $0.hasPrefix(name + ":") }.map { String($0.dropFirst(name.count + 1).drop { $0 == " " }) }
  }
}
