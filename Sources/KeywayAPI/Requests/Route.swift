package import HTTPTypes

/// The resources of the server: the whole table of paths and methods.
package enum Route: Hashable, Sendable {
  case health, ready, metrics, status
  case entities, entity(String), problem(String)
  case allObjects, objects(String), object(String, String), keyPath(String, String, String)
  case transactions, journal
  case streams, stream(String), cells(String), cell(String, String)

  /// The resource under a path, nil where there is none.
  package init?(_ segments: [String]) {
    switch segments.count {
    case 1 where segments[0] == "healthz": self = .health
    case 1 where segments[0] == "readyz": self = .ready
    case 1 where segments[0] == "metrics": self = .metrics
    case 2... where segments[0] == "v1":
      guard let route = Self.versioned(segments) else { return nil }
      self = route
    default: return nil
    }
  }

  private static func versioned(_ segments: [String]) -> Route? {
    switch (segments[1], segments.count) {
    case ("objects", 2): .allObjects
    case ("objects", 3): .objects(segments[2])
    case ("objects", 4): .object(segments[2], segments[3])
    case ("objects", 5): .keyPath(segments[2], segments[3], segments[4])
    case ("transactions", 2): .transactions
    case ("journal", 2): .journal
    case ("streams", 2): .streams
    case ("streams", 3): .stream(segments[2])
    case ("streams", 4) where segments[3] == "cells": .cells(segments[2])
    case ("streams", 5) where segments[3] == "cells": .cell(segments[2], segments[4])
    case ("entities", 2): .entities
    case ("entities", 3): .entity(segments[2])
    case ("problems", 3): .problem(segments[2])
    case ("status", 2): .status
    default: nil
    }
  }

  /// The methods that it has, besides `HEAD` where it has `GET`, and `OPTIONS`.
  package var methods: [HTTPRequest.Method] {
    switch self {
    case .health, .ready, .metrics, .status, .entities, .entity, .problem, .allObjects, .journal: [.get]
    case .objects: [.get, .post]
    case .object: [.get, .put, .patch, .delete]
    case .keyPath: [.get, .put, .post, .delete]
    case .transactions: [.post]
    case .streams: [.get, .post]
    case .stream: [.get, .delete]
    case .cells: [.get, .put, .delete]
    case .cell: [.get, .put, .patch, .delete]
    }
  }

  /// Whether it can be read as a stream.
  package var hasStreams: Bool {
    switch self {
    case .objects, .object, .keyPath, .streams, .journal: true
    default: false
    }
  }

  /// Whether its methods other than `GET` write to the model, and not to a stream.
  package var isWritten: Bool {
    switch self {
    case .objects, .object, .keyPath, .transactions: true
    case .health, .ready, .metrics, .status, .entities, .entity, .problem, .allObjects, .journal, .streams, .stream,
      .cells, .cell:
      false
    }
  }

  /// The value of an `Allow` header (RFC 9110 §10.2.1).
  package var allow: String {
    var names = methods.map(\.rawValue)
    if methods.contains(.get) { names.insert("HEAD", at: 1) }
    return (names + ["OPTIONS"]).joined(separator: ", ")
  }

  /// The value of an `Accept-Patch` header (RFC 5789 §3.1); nil where there is no `PATCH`.
  package var acceptPatch: String? {
    switch self {
    case .object: Body.patchTypes.joined(separator: ", ")
    case .cell: [Body.json, Body.mergePatch].joined(separator: ", ")
    default: nil
    }
  }

  /// The patterns of all paths: what metrics call them, never the paths themselves.
  package static let patterns = [
    "/healthz", "/readyz", "/metrics", "/v1/status", "/v1/entities", "/v1/entities/{Entity}", "/v1/problems/{code}",
    "/v1/objects", "/v1/objects/{Entity}", "/v1/objects/{Entity}/{id}", "/v1/objects/{Entity}/{id}/{keyPath}",
    "/v1/transactions", "/v1/streams", "/v1/streams/{stream}", "/v1/streams/{stream}/cells",
    "/v1/streams/{stream}/cells/{cell}", "/v1/journal",
  ]

  /// Which of `patterns` is this resource's.
  package var patternIndex: Int {
    switch self {
    case .health: 0
    case .ready: 1
    case .metrics: 2
    case .status: 3
    case .entities: 4
    case .entity: 5
    case .problem: 6
    case .allObjects: 7
    case .objects: 8
    case .object: 9
    case .keyPath: 10
    case .transactions: 11
    case .streams: 12
    case .stream: 13
    case .cells: 14
    case .cell: 15
    case .journal: 16
    }
  }
}
