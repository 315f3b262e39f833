/// The rules for every file of the package, with all exceptions. `Contributing.md` explains them.
enum HouseRules {
  /// Characters in a line of a comment, and of text and code in a page.
  static let columns = 120
  /// Lines of a function, from its declaration to its closing brace.
  static let linesOfFunction = 70
  /// Lines below which a file is listed in `smallFiles`.
  static let linesOfFile = 40
  /// The minimum number of files of a folder.
  static let filesOfFolder = 3

  /// The targets in order: each imports only targets before it. The ones that tests share come last.
  static let order = [
    "CMicrohttpd", "CLinux", "CSocketCalls", "CPostgres", "CCurl", "CEmbeddedFiles", "Support", "CEL", "KeyValueModel",
    "KeyValueObserving", "Store", "HTTPServer", "Outbound", "KeywayBrowser", "KeywayServer", "Cluster", "KeywayClient",
    "CommandSupport", "keyway", "TestKit", "keyway-bench",
  ]

  /// Types that are split deliberately, each with its reason.
  static let splitTypes = ["Settings": "the table of all settings, which names every property, is a story of its own"]

  /// Folders that are small, each with its reason.
  static let smallFolders = ["Sources/KeywayBrowser": "all else of the module are scripts, in Resources"]

  /// Files that are small, by the end of their paths, each with its reason.
  static let smallFiles: [String: String] = [
    "Sources/CommandSupport/Interruption.swift": "has nothing to do with options or addresses, all else that is there",
    "TestKit/SplitMix64.swift": "the seed and the generator of all random tests",
    "Sources/KeywayBrowser/BrowserFile.swift": "the only Swift of a module of scripts",
  ]

  /// Words that hide who acts. Say "a client", "a stream", "the writer".
  static let avoidedWords: Set<String> = ["he", "whoever", "somebody"]
  /// The same, of several words.
  static let avoidedPhrases = ["nobody who"]

  /// Words that do not open a paragraph of a documentation comment. A noun or a verb does.
  static let avoidedOpenings: Set<String> = [
    "What", "How", "Whether", "Where", "Whose", "Those", "Who", "Whom", "Has",
  ]

  /// Words that documentation comments do not use as terms. Say "releases", "outcome", "computed", "is notified".
  static let avoidedTerms: Set<String> = [
    "whoever", "somebody", "anybody", "nobody", "courtesy", "the pen", "hear of", "hears of", "heard of", "in earnest",
    "in vain", "as ever", "all the same", "the like", "lets go of", "let go of", "worked out", "became of", "become of",
    "becomes of", "begins anew", "comes to nothing",
  ]

  /// Words after "no" with which it does not stand for "not a".
  static let comparatives: Set<String> = ["longer", "later", "older", "newer", "more", "less", "better"]

  /// The modules whose declarations may be `public`: those of the library products. Everything else is `package`.
  static let products: Set<String> = ["KeyValueModel", "KeyValueObserving"]

  /// The name of a file in which the tests of a target have small things in common.
  static let sharedTestFile = "Support"
}
