import TestKit

/// How the server is asked for a step.
extension WriterObjects {
  /// Makes the writer's objects.
  var founding: WireRequest {
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
  func request(_ step: WriteStep) -> WireRequest {
    switch step {
    case .count(let index):
      return request("PUT", "\(counter(index))/value", "\(counters[index] + 1)")
    case .transfer(let amount):
      return transaction(transfer(amount))
    case .create(isNamed: true):
      return request("PUT", item(nextItem), itemValue)
    case .create(isNamed: false):
      return request("POST", "Item", itemValue)
    case .delete(let index):
      return request("DELETE", items[index].reference ?? "")
    case .insert(let count, let index):
      let places = (index..<index + count).map { "\($0)" }.joined(separator: ",")
      let values = (0..<count).map { entryValue(nextEntry + $0) }.joined(separator: ",")
      return request("POST", "\(list)/entries?index=\(places)", "[\(values)]")
    case .remove(let index):
      return transaction(removal(index))
    case .all(let counter, let amount):
      return transaction(everything(counter, amount))
    }
  }

  private func everything(_ index: Int, _ amount: Int) -> [String] {
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

  private func transfer(_ amount: Int) -> [String] {
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

  private func entryValue(_ number: Int) -> String { #"{"number":\#(number)}"# }

  private func transaction(_ operations: [String]) -> WireRequest {
    let body = #"{"operations":[\#(operations.joined(separator: ","))]}"#
    return WireRequest("POST", "/v1/transactions", writerHeader, body: body)
  }

  private func request(_ method: String, _ target: String, _ body: String? = nil) -> WireRequest {
    WireRequest(method, "/v1/objects/" + target, writerHeader, body: body)
  }

  private var writerHeader: [String: String] { ["Keyway-Writer": name] }
}
