import HTTPServer
import Testing

@testable import KeywayServer

@Suite("Names of streams") struct StreamNamesTests {
  @Test("A name says which node made it; what no node makes has no maker, and goes into no request to one")
  func makers() {
    let mark = NodeMark(of: "http://127.0.0.1:8080")
    let names = StreamNames(mark: mark.text) { 7 }
    for number in [1, 35, 36, UInt64(Int64.max)] {
      let name = names.text(of: StreamID(number))
      #expect(StreamNames.maker(of: name) == mark && names.id(of: name) == StreamID(number))
      for strange in [
        name + "0", String(name.dropLast()), name.uppercased(), name + " ", " " + name, String(name.dropFirst()),
        name.replacing("-", with: "/"), name.replacing("-", with: "\r\n"), mark.text + name.drop { $0 != "-" },
        "ä" + name.dropFirst(), name.dropLast() + "g", "",
      ] where strange != name {
        #expect(StreamNames.maker(of: strange).map { $0 != mark } ?? true, "\(strange)")
        #expect(names.id(of: strange) == nil)
      }
      #expect(StreamNames.maker(of: name + "0") == nil && StreamNames.maker(of: name.replacing("-", with: "\n")) == nil)
    }
  }
}
