import Foundation
import KeyValueModel
import TestKit

/// A random observation, with its request.
struct ShadowObservation {
  var path: String
  /// The cells of a stream with cells, by name; nil for every other stream.
  var cells: JSONObject?
  /// True if it is of one object, and so ends with it.
  var endsWithObject = false

  /// The body of the request; nil for a GET.
  var body: String? { cells.map { Value.object(["cells": .object($0)]).json } }

  /// Makes an observation of the objects that `ShadowTraffic` creates first. `cursor` is that of the present state.
  static func random(using random: inout SplitMix64, cursor: String) -> ShadowObservation {
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1: return keyPaths(using: &random, cursor: cursor)
    case 2:
      let object = objects.randomElement(using: &random) ?? "Employee/1"
      return ShadowObservation(
        path: "/v1/objects/\(object)?\(options(using: &random, cursor: cursor))", endsWithObject: true)
    case 3, 4:
      let query = Self.query(using: &random).compactMap { name, value in
        value.addingPercentEncoding(withAllowedCharacters: .alphanumerics).map { "\(name)=\($0)" }
      }
      return ShadowObservation(path: "/v1/objects/Employee?" + query.joined(separator: "&"))
    default:
      var cells = JSONObject()
      for number in 0..<Int.random(in: 2...5, using: &random) { cells["c\(number)"] = cell(using: &random) }
      return ShadowObservation(path: "/v1/streams", cells: cells)
    }
  }

  private static let objects =
    (1...6).map { "Employee/\($0)" } + (1...3).flatMap { ["Department/\($0)", "Tag/\($0)", "Account/\($0)"] }

  private static let paths = [
    "Employee": [
      "salary", "fullName", "department.name", "department.head.lastName", "headName", "tags", "friends",
      "department.employees", "department.employees.@count", "department.totalSalary", "tags.@count",
      "friends.@max.firstName",
    ],
    "Department": [
      "name", "employees", "employees.@sum.salary", "employees.@avg.salary", "employees.@max.salary", "totalSalary",
      "head.fullName", "head.department.name", "head.tags", "employees.@unionOfObjects.lastName",
      "employees.@distinctUnionOfArrays.tags",
    ],
    "Tag": ["name", "holders", "holders.@count", "holders.@min.salary", "holders.@distinctUnionOfObjects.department"],
    "Account": ["balance", "secret", "owner.fullName", "ownerName", "owner"],
  ]

  private static func somePaths(of object: String, using random: inout SplitMix64) -> [String] {
    let all = paths[object.split(separator: "/").first.map(String.init) ?? ""] ?? []
    return Array(all.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random)))
  }

  private static func keyPaths(using random: inout SplitMix64, cursor: String) -> ShadowObservation {
    let object = objects.randomElement(using: &random) ?? "Employee/1"
    let paths = somePaths(of: object, using: &random).joined(separator: ",")
    return ShadowObservation(
      path: "/v1/objects/\(object)/\(paths)?\(options(using: &random, cursor: cursor))", endsWithObject: true)
  }

  private static func someOptions(using random: inout SplitMix64) -> [String] {
    ["new", "old", "prior"].filter { _ in Int.random(in: 0..<3, using: &random) > 0 }
  }

  /// Makes options. Without the initial state the stream has no id at first, so it begins after a cursor.
  private static func options(using random: inout SplitMix64, cursor: String) -> String {
    var names = someOptions(using: &random)
    let context = Bool.random(using: &random) ? "&context=x" : ""
    if Bool.random(using: &random) {
      names.append("initial")
      return "options=\(names.joined(separator: ","))\(context)"
    }
    return "options=\(names.isEmpty ? "none" : names.joined(separator: ","))\(context)&since=\(cursor)"
  }

  private static func query(using random: inout SplitMix64) -> [(name: String, value: String)] {
    let filters = ["", "salary > 15.0", "department.name != null", "lastName < 'L3'", "department == 'Department/1'"]
    var query: [(String, String)] = []
    if let filter = filters.randomElement(using: &random), !filter.isEmpty { query.append(("filter", filter)) }
    let sorts = ["-salary", "lastName,-salary", "department.name,salary", "fullName"]
    query.append(("sort", sorts.randomElement(using: &random) ?? "salary"))
    if Int.random(in: 0..<3, using: &random) == 0 { query.append(("section", "department.name")) }
    if Bool.random(using: &random) { query.append(("limit", "\(Int.random(in: 1...4, using: &random))")) }
    if Bool.random(using: &random) { query.append(("keys", "fullName,salary")) }
    return query
  }

  private static func cell(using random: inout SplitMix64) -> Value {
    if Int.random(in: 0..<3, using: &random) == 0 {
      var cell: JSONObject = ["entity": .string("Employee")]
      for (name, value) in query(using: &random) {
        switch name {
        case "limit": cell[name] = Int64(value).map(Value.integer)
        case "keys": cell[name] = .array(value.split(separator: ",").map { .string(String($0)) })
        default: cell[name] = .string(value)
        }
      }
      return .object(cell)
    }
    let object = objects.randomElement(using: &random) ?? "Employee/1"
    let options = ["initial"] + someOptions(using: &random)
    var cell: JSONObject = ["object": .string(object), "options": .array(options.map { .string($0) })]
    if Int.random(in: 0..<3, using: &random) > 0 {
      cell["keyPaths"] = .array(somePaths(of: object, using: &random).map { .string($0) })
    }
    return .object(cell)
  }
}
