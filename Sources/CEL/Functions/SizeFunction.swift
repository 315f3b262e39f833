/// `size(value)` and `value.size()` (CEL language definition, List of Standard Definitions).
enum SizeFunction {
  static let size = FunctionDefinition(
    "size", [([.string], .int), ([.bytes], .int), ([.list(.dyn)], .int), ([.map(.dyn, .dyn)], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    switch arguments[0] {
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      return .int(Int64(text.unicodeScalars.count))
    case .bytes(let bytes): return .int(Int64(bytes.count))
    case .list(let elements): return .int(Int64(elements.count))
    case .lazyList(let sequence): return .int(Int64(sequence.count))
    case .map(let map): return .int(Int64(map.count))
    default: throw arguments.mismatch
    }
  }
}
