import Testing

/// Checks every Swift file. A failure lists the places, one a line.
@Suite("The sources")
struct SourceHygieneTests {
  private let tree: SourceTree

  init() throws { tree = try SourceTree.package.get() }

  private var files: [SourceTree.File] { tree.sources + tree.tests }

  @Test("No line is longer than 120 columns; `swift format` leaves comments and texts out")
  func columns() {
    let places = files.flatMap { file in
      file.lines.indices.filter { file.lines[$0].isLonger(than: HouseRules.columns) }.map(file.place)
    }
    expectNone(places)
  }

  @Test("A file is named after a type that it declares, or extends with a feature")
  func fileNames() {
    let named = files.filter { !($0.path.hasPrefix("Tests/") && $0.name == HouseRules.sharedTestFile) }
    let places = named.compactMap { file -> String? in
      let type = file.name.prefix { $0 != "+" }
      let isFeature = file.name.contains("+")
      let types = file.declarations.filter { SwiftDeclaration.types.contains($0.keyword) }
      let isNamed = types.contains {
        ($0.keyword == "extension") == isFeature && $0.name.split(separator: ".").contains(type)
      }
      return isNamed ? nil : "\(file.path): \(isFeature ? "extends" : "declares") no \(type)"
    }
    expectNone(places)
  }

  @Test("No lock has a closure for its value: each look would wrap it once more; see KeptAction")
  func closuresUnderLocks() throws {
    let closure = try Regex(#"Locked<\(*(@Sendable\b|\([^()]*\)( throws)? ->)"#)
    let places = files.flatMap { file in
      file.lines.indices.filter { file.lines[$0].contains(closure) }.map(file.place)
    }
    expectNone(places)
  }

  @Test("A function has at most 70 lines")
  func functions() {
    let places = files.flatMap { file in
      file.declarations
        .filter { SwiftDeclaration.functions.contains($0.keyword) && $0.lineCount > HouseRules.linesOfFunction }
        .map { "\(file.place($0.line)): \($0.keyword) \($0.name) has \($0.lineCount) lines" }
    }
    expectNone(places)
  }

  @Test("A file has at least 40 lines, or is listed with its reason")
  func lengths() {
    let small = files.filter { $0.lines.count < HouseRules.linesOfFile }.map(\.path)
    let isListed = { (path: String) in HouseRules.smallFiles.keys.contains(where: path.hasSuffix) }
    expectNone(small.filter { !isListed($0) })
    expectNone(HouseRules.smallFiles.keys.filter { end in !small.contains { $0.hasSuffix(end) } }.sorted())
  }

  @Test("A folder has at least three files, or is listed with its reason")
  func folders() {
    let parent = { (path: String) in path.split(separator: "/").dropLast().joined(separator: "/") }
    let counts = Dictionary(grouping: tree.paths, by: parent).mapValues(\.count)
    let small = Set(files.map { parent($0.path) }).filter { counts[$0] ?? 0 < HouseRules.filesOfFolder }
    #expect(small == Set(HouseRules.smallFolders.keys))
  }

  @Test("No stored property is visible to its module only because its type is split over files")
  func splitTypes() {
    expectNone(tree.sources.flatMap { file in tree.propertiesForExtensions(of: file) })
  }

  @Test("A target imports only such as stand before it in the declared order")
  func order() throws {
    let targets = try tree.targets()
    #expect(targets.map(\.name).filter { !HouseRules.order.contains($0) && !$0.hasSuffix("Tests") } == [])
    #expect(HouseRules.order.filter { name in !targets.contains { $0.name == name } } == [])
    for target in targets {
      guard let place = HouseRules.order.firstIndex(of: target.name) else { continue }
      let wrong = target.dependencies.filter { HouseRules.order[place...].contains($0) }
      #expect(wrong.isEmpty, "\(target.name) imports \(wrong)")
    }
  }

  @Test("The library products need no C library that a system would have to have")
  func libraries() throws {
    let targets = Dictionary(uniqueKeysWithValues: try tree.targets().map { ($0.name, $0.dependencies) })
    let installed = Set(try tree.targets().map(\.name).filter { tree.manifest.contains("\"\($0)\", pkgConfig:") })
    #expect(installed.contains("CMicrohttpd"))
    for product in HouseRules.products {
      var (needed, rest): (Set<String>, [String]) = ([], [product])
      while let target = rest.popLast() {
        if needed.insert(target).inserted { rest += targets[target] ?? [] }
      }
      #expect(needed.contains("Support"))
      expectNone(needed.intersection(installed).sorted().map { "\(product) needs \($0)" })
    }
  }

  @Test("An import that is internal does not say so, for that is the rule")
  func imports() {
    expectNone(
      files.flatMap { file in
        file.lines.indices.filter { file.lines[$0].hasPrefix("internal import ") }.map(file.place)
      })
  }

  @Test("Only the library products have public declarations")
  func access() {
    let places = tree.sources.filter { !HouseRules.products.contains($0.module) }.flatMap { file in
      // A public import declares nothing: inlinable code may only use modules that are imported in this way.
      file.declarations.filter { $0.modifiers.contains("public") && $0.keyword != "import" }.map { file.place($0.line) }
    }
    expectNone(places)
  }

  @Test("A sentence says who acts")
  func words() {
    expectNone(tree.sources.flatMap(\.avoidedWords))
  }

  @Test("Each paragraph of a documentation comment opens with a noun or a verb")
  func openings() {
    expectNone(
      files.flatMap { file in
        file.places(Prose(documentationOf: file.lines).openings(with: HouseRules.avoidedOpenings))
      })
  }

  @Test("Documentation comments use standard terms")
  func terms() {
    expectNone(
      files.flatMap { file in
        let prose = Prose(documentationOf: file.lines)
        return file.places(prose.terms(HouseRules.avoidedTerms) + prose.denials(allowingThere: true))
      })
  }

  @Test("A message says that a thing does not exist, or is not another")
  func denials() {
    expectNone(tree.sources.flatMap { file in file.places(Prose(codeOf: file.lines).denials(allowingThere: false)) })
  }
}
