@testable import CEL

/// The value of a collection function, computed as by a caller that stores contributions.
enum FoldedFunction {
  /// The values of all functions, nil when one of them is an error.
  static func values(_ functions: [CollectionFunction], _ model: StaffModel) -> [ExpressionValue]? {
    var values: [ExpressionValue] = []
    for function in functions {
      guard case .success(let value) = FoldedFunction.value(function, model) else { return nil }
      values.append(value)
    }
    return values
  }

  /// The value of one function over the list at its path.
  static func value(_ function: CollectionFunction, _ model: StaffModel) -> Result<ExpressionValue, EvaluationError> {
    var budget = EvaluationBudget(ExpressionLimits())
    var list: ExpressionValue = .object(model.root)
    for key in function.path {
      guard case .object(let object) = list else { return .failure(.noSuchKey(key)) }
      do throws(EvaluationError) {
        list = try object.field(named: key, index: -1, budget: &budget)
      } catch {
        return .failure(error)
      }
    }
    guard let elements = list.asList else { return .failure(.notBool(list)) }
    do throws(EvaluationError) {
      var contributions: [Result<ExpressionValue, EvaluationError>] = []
      for index in 0..<elements.count {
        switch function.contribution(of: try elements.element(at: index), budget: &budget) {
        case .success(nil): continue
        case .success(let value?): contributions.append(.success(value))
        case .failure(let error): contributions.append(.failure(error))
        }
      }
      // The order of contributions makes no difference.
      return .success(try folded(function, contributions.reversed(), &budget))
    } catch {
      return .failure(error)
    }
  }

  private static func folded(
    _ function: CollectionFunction, _ contributions: [Result<ExpressionValue, EvaluationError>],
    _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    let trues = contributions.count { if case .success(.bool(true)) = $0 { true } else { false } }
    let falses = contributions.count { if case .success(.bool(false)) = $0 { true } else { false } }
    switch function.function {
    case .all where falses > 0: return .bool(false)
    case .exists where trues > 0: return .bool(true)
    default: break
    }
    var values: [ExpressionValue] = []
    for contribution in contributions { values.append(try contribution.get()) }
    switch function.function {
    case .sum:
      let emptyValue = AggregateFunctions.emptySum(of: .list(function.resultType))
      return try value(SumFold(emptyValue: emptyValue), values, &budget)
    case .avg: return try value(AverageFold(), values, &budget)
    case .min: return try value(ExtremeFold(sign: -1), values, &budget)
    case .max: return try value(ExtremeFold(sign: 1), values, &budget)
    case .size: return .int(Int64(values.count))
    case .all: return .bool(true)
    case .exists: return .bool(false)
    case .existsOne: return .bool(trues == 1)
    }
  }

  private static func value(
    _ fold: some ListFold, _ values: [ExpressionValue], _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    var fold = fold
    for value in values { try fold.add(value, &budget) }
    return try fold.value()
  }
}
