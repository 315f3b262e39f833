import TestKit

/// Texts with everything in them that a terminal may take amiss.
enum RandomText {
  /// Up to a dozen scalars: letters, marks, wide ones, and controls of each kind.
  static func text(using random: inout SplitMix64) -> String {
    let ranges: [ClosedRange<UInt32>] = [
      0x00...0x1F, 0x20...0x7E, 0x7F...0x9F, 0xC0...0x17F, 0x300...0x36F, 0x600...0x605, 0x200B...0x200F,
      0x2028...0x202E, 0x2066...0x2069, 0x3041...0x9FFF, 0xFE00...0xFE0F, 0x1F300...0x1F6FF, 0x1F1E6...0x1F1FF,
      0xE0000...0xE007F,
    ]
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...12, using: &random) {
      let range = ranges[Int.random(in: 0..<ranges.count, using: &random)]
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) { text.append(scalar) }
    }
    return String(text)
  }

  /// Whether a text holds a character that commands a terminal.
  static func commands(_ text: String) -> Bool {
    text.unicodeScalars.contains { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: true
      default: false
      }
    }
  }
}
