import CEL

/// Values that a step works out: `set Person.name = first + ' ' + last`.
extension StateMigration {
  /// The value of an expression for an object of the old state, in the form of the new key. A failure, and a value that
  /// the key does not take, are obstacles.
  mutating func set(
    _ column: MigrationPlan.Column, _ expression: KeyExpression, _ step: Int, _ record: ObjectRecord,
    _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    let slot = Slot(object: rebuilt.name, storage: column.storage)
    let former = formerValue(of: column, record)
    expectedValues -= former.heldCount
    for case .reference(let target) in former.elements ?? [former] {
      if let name = plan.name(of: target) { removedLinks[Link(holder: slot, target: name)] = step }
    }
    let value: Value
    do throws(Attribute.Refusal) {
      value = try self.value(of: expression, column, rebuilt.source, record)
    } catch {
      let site = column.site.with(.value, "cannot be set by '\(plan.steps[step])'", remedy: nil)
      fail(column, site, rebuilt.name, error.reason)
      return .null
    }
    if case .reference(let target) = value {
      let link = Link(holder: slot, target: target)
      if removedLinks.removeValue(forKey: link) == nil { addedLinks[link] = step }
    }
    expectedValues += value.heldCount
    if value != former { rebuilt.steps.append(step) }
    return value
  }

  private func formerValue(of column: MigrationPlan.Column, _ record: ObjectRecord) -> Value {
    if case .carried(let storage, _) = column.source { record.values[storage] } else { .null }
  }

  /// Each object has the budget of one expression.
  private func value(
    of expression: KeyExpression, _ column: MigrationPlan.Column, _ object: Reference, _ record: ObjectRecord
  ) throws(Attribute.Refusal) -> Value {
    var budget = EvaluationBudget(ExpressionLimits())
    let evaluated: ExpressionValue
    do throws(EvaluationError) {
      evaluated = try EvaluationPass(reader: old).result(of: expression, object, record, budget: &budget).get()
    } catch {
      throw Attribute.Refusal(reason: "fails: \(error.message)")
    }
    // References within a value of JSON are texts.
    let isJSON = column.key.valueAttribute?.type == .json
    guard let plain = Value(evaluated, as: nil), let value = isJSON ? try? Value(json: plain.json) : plain else {
      throw Attribute.Refusal(reason: "gives what JSON does not have")
    }
    guard !value.isNull else { return .null }
    if let attribute = column.key.valueAttribute { return try attribute.accepting(value) }
    return .reference(try target(value, column))
  }

  /// The object that a value names, by its new name. The expression names objects as the old schema does.
  private func target(_ value: Value, _ column: MigrationPlan.Column) throws(Attribute.Refusal) -> Reference {
    let named: Reference? =
      switch value {
      case .reference(let reference): reference
      case .string(let text): Reference(text)
      default: nil
      }
    guard let destination = column.key.relationship?.destination,
      let target = named.flatMap({ old.record($0) == nil ? $0 : plan.name(of: $0) }),
      plan.new.entity(of: target)?.isKind(of: destination) == true
    else { throw Attribute.Refusal(reason: "gives \(value.json), which the key does not take") }
    guard exists(target) else { throw Attribute.Refusal(reason: "gives \(target), which is not there") }
    return target
  }
}
