package import KeyValueModel

/// One block of an event stream, as it stands on the wire and taken apart.
package struct WireEvent: Equatable {
  /// The lines of the block, without the empty one.
  package let lines: [String]

  /// The block as the contract shows it.
  package var text: String { lines.joined(separator: "\n") }

  /// The fields of `retry`, `id`, `event` and `data`.
  package var retry: String? { field("retry") }
  package var id: String? { field("id") }
  package var name: String? { field("event") }
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
