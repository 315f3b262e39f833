extension ImportTableTests {
  static let jsonLines: [Case] = [
    Case(
      "JSON lines of an export", #"{"@ref":"Item/1","@revision":5,"name":"a","count":5,"extra":"5","owner":"Item/2"}"#,
      "--format jsonl", #"1 {"name":"a","count":5,"extra":"5","owner":"Item/2"}"#),
    Case(
      "PocketBase",
      #"{"collectionId":"c","collectionName":"items","id":"r1","title":"a","created":"2022-06-25 11:03:50.052Z","#
        + #""author":"u1","tags":["t1","t2"],"open":true,"done":""}"#,
      "--format jsonl --id id --map collectionId= --map collectionName= --map title=name --map created=day "
        + "--map author=owner --reference author=Item --map tags=parts --reference tags=Item --map done=note --null ''",
      #"r1 {"name":"a","day":"2022-06-25T11:03:50.052Z","open":true,"owner":"Item/u1","parts":["Item/t1","Item/t2"]}"#),
    Case(
      "Firestore",
      #"{"name":"docs/a1","fields":{"title":{"stringValue":"a"},"count":{"integerValue":"7"},"x":{"nullValue":null}}}"#,
      "--format jsonl --id fields.title.stringValue --map name= --map fields.title.stringValue=name "
        + "--map fields.count.integerValue=count --map fields=",
      #"a {"count":7,"name":"a"}"#),
    Case(
      "members inside of others", #"{"id":7,"profile":{"name":"a","age":3},"a.b":"x"}"#,
      "--format jsonl --id id --map profile.name=name --map profile=extra --map a.b=note",
      #"7 {"name":"a","note":"x","extra":{"age":3}}"#),
    Case(
      "an object that is empty without its members", #"{"id":"7","profile":{"first":{"name":"a"}}}"#,
      "--format jsonl --id id --map profile.first.name=name", #"7 {"name":"a"}"#),
    Case(
      "a member inside of another that is left", #"{"id":"7","profile":{"name":"a","age":3}}"#,
      "--format jsonl --id id --map profile.name=name",
      "1: Item has no key profile; it has \(keys) → "
        + "--map profile=KEY names another key, --map profile= leaves profile out"
    ),
    Case(
      "an id inside of another member", #"{"meta":{"id":7.0},"name":"a"}"#, "--format jsonl --id meta.id",
      #"7 {"name":"a"}"#),
    Case(
      "two members of one key", #"{"@ref":"Item/1","title":"a","name":"b"}"#, "--format jsonl --map title=name",
      "1: two members set the key name"),
    Case(
      "a key that is not there", #"{"@ref":"Item/1","title":"a"}"#, "--format jsonl --map title=heading",
      "1: Item has no key heading for title; it has \(keys) → "
        + "--map title=KEY names another key, --map title= leaves title out"),
    Case(
      "texts of other types",
      #"{"@ref":"Item/1","count":"5,0","price":"1.234,5","open":"t","day":"1656154830"}"#
        + "\n" + #"{"@ref":"Item/2","count":"five"}"# + "\n" + #"{"@ref":"Item/3","open":"no"}"#,
      "--format jsonl --decimal , --thousands . --true t --date-format %s",
      #"1 {"count":5,"price":1234.5,"open":true,"day":"2022-06-25T11:00:30Z"}"#,
      "2: count is not an integer of 64 bits: five",
      "3: open is neither true nor false: no → --true yes --false no reads no"),
    Case(
      "texts that stay as they are", #"{"@ref":"Item/1","name":"5","extra":"5","note":""}"#, "--format jsonl",
      #"1 {"name":"5","note":"","extra":"5"}"#),
    Case(
      "words for nothing", #"{"@ref":"Item/1","name":"NULL","count":"NULL","extra":"NULL","owner":"NULL","note":"x"}"#,
      "--format jsonl --null NULL", #"1 {"note":"x"}"#),
    Case(
      "a reference that is none", #"{"@ref":"Item/1","owner":{"id":1},"name":null}"#,
      "--format jsonl --reference owner=Item", #"1: owner must be an id, not {"id":1}"#),
    Case(
      "a reference of a key that is no relationship", #"{"@ref":"Item/1","name":"a"}"#,
      "--format jsonl --reference name=Item",
      "1: name does not set a relationship, so --reference name=Item has no effect"),
    Case(
      "whole numbers as ids of references", #"{"@ref":"Item/1","owner":7.0,"parts":[1,"b",null]}"#,
      "--format jsonl --reference owner=Item --reference parts=Item",
      "1: parts must be a reference such as \"Account/1\", not null"),
    Case(
      "a date that is none", #"{"@ref":"Item/1","day":"25.06.2022"}"#, "--format jsonl",
      "1: day is not a date of RFC 3339: 25.06.2022 → --date-format '%d.%m.%Y' reads 25.06.2022 as 2022-06-25"),
    Case(
      "UTF-16", bytes: [0xFF, 0xFE] + Array(#"{"@ref":"Item/1","name":"a"}"#.utf8).flatMap { [$0, 0] },
      "--format jsonl",
      [#"1 {"name":"a"}"#]),
  ]
}
