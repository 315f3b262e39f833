extension Schema {
  /// Loads a schema file (the specification, section 2). Throws every mistake that was found, with line and column.
  public init(yaml: String) throws(SchemaError) {
    var reader = SchemaReader()
    let declarations = reader.read(yaml)
    var problems = reader.problems
    var compiler = SchemaCompiler()
    let schema = compiler.compile(declarations, access: reader.access)
    // What does not fit together is reported only once every declaration could be read: the rest would be echoes.
    if problems.isEmpty { problems = compiler.problems }
    guard problems.isEmpty else {
      throw SchemaError(problems: problems.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
    }
    self = schema
  }
}
