import Testing

@Suite("Declarations of a source")
struct SwiftDeclarationTests {
  private static let text = #"""
    /// A struct Comment { is none.
    package struct Row: Sendable {
      private(set) var name = ""

      @Test("A func in a text (with brackets)") func long(
        first: Int,
        second: Int
      ) where Self: Sendable {
        let structure = 1
        print("""
          } func no() {
          """)
      }
      init?(_ text: String) { nil }
    }

    extension Outer.Row { static func short() {} }
    """#

  @Test("Each has its keyword, its name and its lines")
  func declarations() {
    let lines = Self.text.split(separator: "\n", omittingEmptySubsequences: false)
    let found = SwiftDeclaration.all(in: lines).map { "\($0.line) \($0.keyword) \($0.name) \($0.lineCount)" }
    #expect(
      found == [
        "1 struct Row 14", "2 var name 1", "4 func long 9", "8 let structure 1", "13 init  1",
        "16 extension Outer.Row 1",
      ])
  }

  @Test("Modifiers are found, also one with brackets")
  func modifiers() {
    let lines = Self.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(SwiftDeclaration.all(in: lines).prefix(2).map(\.modifiers) == [["package"], ["private"]])
  }
}
