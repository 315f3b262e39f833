/// How the server is asked for a step.
extension CrashWorld {
  /// Makes the writer's objects.
  var founding: CrashRequest {
    var operations = [
      #"{"op":"create","object":"\#(group)","value":{}}"#,
      #"{"op":"create","object":"\#(leftHalf)","value":{"value":\#(left)}}"#,
      #"{"op":"create","object":"\#(rightHalf)","value":{"value":\#(right)}}"#,
      #"{"op":"create","object":"\#(list)","value":{"name":"\#(name)"}}"#,
    ]
    for index in counters.indices {
      operations.append(#"{"op":"create","object":"\#(counter(index))","value":{"group":"\#(group)"}}"#)
    }
    return transaction(operations)
  }

  /// Asks for a step.
  func request(_ step: CrashStep) -> CrashRequest {
    switch step {
    case .count(let index):
      return CrashRequest(
        method: "PUT", path: "/v1/objects/\(counter(index))/value", body: "\(counters[index] + 1)", writer: name)
    case .transfer(let amount):
      return transaction(transfer(amount))
    case .create(isNamed: true):
      return CrashRequest(
        method: "PUT", path: "/v1/objects/\(item(nextItem))", body: itemValue, writer: name)
    case .create(isNamed: false):
      return CrashRequest(method: "POST", path: "/v1/objects/Item", body: itemValue, writer: name)
    case .delete(let index):
      return CrashRequest(method: "DELETE", path: "/v1/objects/\(items[index].reference ?? "")", writer: name)
    case .insert(let count, let index):
      let places = (index..<index + count).map { "\($0)" }.joined(separator: ",")
      let values = (0..<count).map { entryValue(nextEntry + Int64($0)) }.joined(separator: ",")
      return CrashRequest(
        method: "POST", path: "/v1/objects/\(list)/entries?index=\(places)", body: "[\(values)]", writer: name)
    case .remove(let index):
      return transaction(removal(index))
    case .all(let counter, let amount):
      return transaction(everything(counter, amount))
    }
  }

  private func everything(_ index: Int, _ amount: Int64) -> [String] {
    var operations = [
      #"{"op":"set","object":"\#(counter(index))","keyPath":"value","value":\#(counters[index] + 1)}"#
    ]
    operations += transfer(amount)
    if let first = items.first?.reference { operations.append(#"{"op":"delete","object":"\#(first)"}"#) }
    operations.append(#"{"op":"create","entity":"Item","value":\#(itemValue)}"#)
    operations.append(
      #"{"op":"insert","object":"\#(list)","keyPath":"entries","index":[0],"value":[\#(entryValue(nextEntry))]}"#)
    if entries.count + 1 > Self.maximumEntries, let last = entries.last?.reference {
      operations.append(#"{"op":"delete","object":"\#(last)"}"#)
    }
    return operations
  }

  private func transfer(_ amount: Int64) -> [String] {
    [(leftHalf, left - amount), (rightHalf, right + amount)].map { half, value in
      #"{"op":"patch","object":"\#(half)","value":{"value":\#(value),"sequence":\#(sequence + 1)}}"#
    }
  }

  private func removal(_ index: Int) -> [String] {
    let entry = entries[index].reference ?? ""
    return [
      #"{"op":"remove","object":"\#(list)","keyPath":"entries","index":[\#(index)]}"#,
      #"{"op":"delete","object":"\#(entry)"}"#,
    ]
  }

  private var itemValue: String { #"{"number":\#(nextItem),"writer":\#(writer)}"# }

  private func entryValue(_ number: Int64) -> String { #"{"number":\#(number)}"# }

  private func transaction(_ operations: [String]) -> CrashRequest {
    CrashRequest(
      method: "POST", path: "/v1/transactions", body: #"{"operations":[\#(operations.joined(separator: ","))]}"#,
      writer: name)
  }
}
