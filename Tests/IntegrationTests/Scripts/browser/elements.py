"""Checks the elements of keyway.js in Chromium: what they show is text, they end with their element, and out of sight
they are invisible cells, however long the page is.

Usage: elements.py KEYWAY
"""

import sys
import time

from world import Server, chromium, load, until

SETUP = """
  window.Keyway = keyway.Keyway
  document.body.innerHTML = `
    <p><keyway-value id="value" object="Item/1" key-path="value"></keyway-value></p>
    <p><keyway-value id="name" object="Item/1" key-path="name"></keyway-value></p>
    <p><keyway-value id="none" object="Item/9999" key-path="name"></keyway-value></p>
    <keyway-list id="list" entity="Item" filter="value < 20" sort="-value">
      <template><div><b data-key="name"></b> <i data-key="value"></i></div></template>
    </keyway-list>
    <div id="long" style="height: 600px; overflow: scroll"></div>`
  const rows = []
  for (let n = 0; n < 10000; n++) {
    rows.push(`<div style="height: 20px"><keyway-value object="Item/${n % 300}" key-path="value"></keyway-value></div>`)
  }
  document.querySelector('#long').innerHTML = rows.join('')
"""
LIST = """return [...document.querySelectorAll('#list > div')].map(row =>
  [row.querySelector('b').textContent, row.querySelector('i').textContent])"""
SEEN = """const box = document.querySelector('#long').getBoundingClientRect()
return [...document.querySelectorAll('#long keyway-value')].filter(each => {
  const { top, bottom } = each.getBoundingClientRect()
  return bottom > box.top + 20 && top < box.bottom - 20 && top < innerHeight - 20
}).map(each => [each.getAttribute('object'), each.textContent])"""
MARKUP = "<img src=x onerror='window.hacked = true'>&amp;"


class Elements:
    def __init__(self, program):
        self.server = Server(program)
        self.server.start()
        create = [{"op": "create", "object": f"Item/{n}", "value": {"name": f"item {n}", "value": n}}
                  for n in range(300)]
        self.server.ask("POST", "/v1/transactions", {"operations": create})
        self.driver = chromium()

    def text(self, name):
        return self.driver.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def cells(self):
        stream = self.server.streams()[0]["stream"]
        return self.server.ask("GET", f"/v1/streams/{stream}/cells")[0]["cells"].values()

    def visible(self):
        return sum(cell["visible"] for cell in self.cells())

    def rows(self, sort="-value"):
        found = self.server.ask("GET", f"/v1/objects/Item?filter=value%20%3C%2020&sort={sort}&limit=1000")[0]["objects"]
        return [[row["name"] or "", str(row["value"])] for row in found]

    def run(self):
        load(self.driver, self.server.url + "/healthz", SETUP)
        self.shows()
        self.sorts()
        self.complains()
        self.lists()
        self.keeps()
        self.scrolls()
        self.ends()

    def shows(self):
        until(lambda: self.text("value") == "1" and self.driver.execute_script(LIST) == self.rows(), "first values")
        assert self.text("none") == ""
        self.server.ask("PUT", "/v1/objects/Item/1/name", MARKUP)
        until(lambda: self.text("name") == MARKUP, "a name as text")
        until(lambda: self.driver.execute_script(LIST) == self.rows(), "a row as text")
        for n, value in [(1, 5), (3, 100), (200, 3), (4, 19)]:
            self.server.ask("PUT", f"/v1/objects/Item/{n}/value", value)
        self.server.ask("DELETE", "/v1/objects/Item/7")
        until(lambda: self.driver.execute_script(LIST) == self.rows(), "rows that came, went and moved")
        assert not self.driver.execute_script("return window.hacked || document.querySelector('img')")
        self.driver.execute_script("document.getElementById('value').setAttribute('object', 'Item/2')")
        until(lambda: self.text("value") == "2", "the value of another object")
        self.server.ask("PATCH", "/v1/objects/Item/2", {"name": None})
        self.driver.execute_script("document.getElementById('name').setAttribute('object', 'Item/2')")
        until(lambda: self.text("name") == "", "an empty value")
        self.server.ask("DELETE", "/v1/objects/Item/2")
        until(lambda: self.text("value") == "", "an object that is gone")
        self.driver.execute_script("document.getElementById('list').setAttribute('sort', 'value')")
        until(lambda: self.driver.execute_script(LIST) == self.rows("value"), "rows in another order")

    def sorts(self):
        """A list in the order of a key that it does not show."""
        self.driver.execute_script("""document.body.insertAdjacentHTML('afterbegin',
          `<keyway-list id="names" entity="Item" filter="value < 20" sort="-value">
            <template><div><b data-key="name"></b></div></template></keyway-list>`)""")

        def is_right():
            names = self.driver.execute_script(
                "return [...document.querySelectorAll('#names b')].map(b => b.textContent)")
            return names == [name for name, _ in self.rows()]
        until(is_right, "names in the order of values")
        for n, value in [(9, 18), (10, 17), (9, 16)]:
            self.server.ask("PUT", f"/v1/objects/Item/{n}/value", value)
            until(is_right, "a row that has moved")
        self.driver.execute_script("document.getElementById('names').remove()")

    def complains(self):
        """What is mistyped says so in its place, until it is right."""
        run = self.driver.execute_script
        self.driver.get_log("browser")
        no_key = "Item has no key 'nme'; did you mean 'name'?"
        no_entity = "the schema has no entity 'Itm'; did you mean 'Item'?"
        list_of = "<template><p data-key=name></p></template></keyway-list>"
        for html, detail, mend in [
            ("<keyway-list entity=Itm>" + list_of, no_entity, "entity=Item"),
            ("<keyway-list entity=Item filter='valu < 3'>" + list_of,
             "line 1, column 1: undeclared reference to 'valu'; did you mean 'value'?", "filter=value < 3"),
            ("<keyway-list entity=Item sort=nme>" + list_of, no_key, "sort=name"),
            ("<keyway-list>" + list_of, "<keyway-list> has no entity", "entity=Item"),
            ("<keyway-list entity=Item></keyway-list>", "<keyway-list> has no <template> with an element", None),
            ("<keyway-list entity=Item>" + list_of.replace("name", "nme"), no_key, None),
            ("<keyway-value object=Item/3 key-path=nme></keyway-value>", no_key, "key-path=name"),
            ("<keyway-value object=Itm/3 key-path=name></keyway-value>", no_entity, "object=Item/3"),
            ("<keyway-value object=Item/3></keyway-value>", "<keyway-value> has no key-path", "key-path=name"),
        ]:
            run("document.body.insertAdjacentHTML('afterbegin', arguments[0])", html)

            def shown():
                alerts = "document.body.firstChild.querySelectorAll('[role=alert]')"
                return run(f"return [...{alerts}].map(each => each.innerText)")
            until(lambda: shown() == [detail], f"{html}: {detail}")
            if mend:
                run("document.body.firstChild.setAttribute(...arguments)", *mend.split("=", 1))
                until(lambda: "item" in run("return document.body.firstChild.innerText"), f"{html} with {mend}")
                assert shown() == [], "a problem that is no more"
            run("document.body.firstChild.remove()")
        assert len([each for each in self.driver.get_log("browser") if "console-api" in each["source"]]) >= 9
        # A page can show the problem in its own way.
        run("""addEventListener('problem', event => {
          event.preventDefault()
          window.seen = event.detail
        }, { once: true })""")
        run("document.body.insertAdjacentHTML('afterbegin', arguments[0])", "<keyway-list entity=Itm>" + list_of)
        until(lambda: run("return window.seen?.code") == "unknown-entity", "an event")
        assert run("return document.body.firstChild.innerText") == ""
        run("document.body.firstChild.setAttribute('entity', 'Item')")
        until(lambda: "item" in run("return document.body.firstChild.innerText"), "a list that is mended")
        run("document.body.firstChild.remove()")

    def lists(self):
        """The rows of a query as they are now, of several pages too."""
        create = [{"op": "create", "object": f"Item/x{n}",
                   "value": {"name": f"x {n}", "value": 1000 + n, "group": "many"}}
                  for n in range(2300)]
        self.server.ask("POST", "/v1/transactions", {"operations": create})

        def listed(**query):
            script = """const [query, done] = arguments
            Keyway.shared.list({ entity: 'Item', filter: "group == 'many'", sort: '-value', ...query })
              .then(rows => done([rows.map(row => [row.name, row.value]), { ...rows }, rows.length]),
                    problem => done([problem.status, problem.detail]))"""
            return self.driver.execute_async_script(script, query)
        all = [[f"x {n}", 1000 + n] for n in reversed(range(2300))]
        rows, more, count = listed()
        assert rows == all and count == more["total"] == 2300, f"{len(rows)} rows, {more}"
        assert [listed(limit=limit)[0] for limit in [1, 1000, 1500, 5000]] == [all[:1], all[:1000], all[:1500], all]
        rows, more, _ = listed(limit=2, keys=["name", "group"], aggregate="@sum.value")
        assert rows == [["x 2299", None], ["x 2298", None]], rows
        assert more["aggregates"] == {"@sum.value": sum(value for _, value in all)}, more
        rows, more, _ = listed(filter=None, section="group", sort=None, limit=2, aggregate=None)
        assert more["sections"][1] == {"name": "many", "count": 2300}, more
        rows, more, _ = listed(limit=0)
        assert rows == [] and more["total"] == 2300, more
        assert listed(limit=-1) == [400, "limit must be a whole number from 0 to 1000"], listed(limit=-1)
        assert listed(sort="nme")[0] == 404
        self.server.ask("POST", "/v1/transactions", {"operations": [
            {"op": "delete", "object": f"Item/x{n}"} for n in range(2300)]})

    def keeps(self):
        """What a page may rely on beside what is shown."""
        run = self.driver.execute_script
        self.server.ask("PUT", "/v1/objects/Item/5/name", "five")
        run("document.getElementById('name').setAttribute('object', 'Item/5')")
        until(lambda: self.text("name") == "five", "the name of another object")
        # What is set to what it is shows what it did.
        run("""for (const [id, name] of [['name', 'object'], ['list', 'entity']]) {
          const element = document.getElementById(id)
          element.setAttribute(name, element.getAttribute(name))
        }""")
        until(lambda: self.text("name") == "five" and run(LIST) == self.rows("value"), "the same attribute again")
        # Out of the page it shows nothing, and in it again what there is.
        assert run("""const name = document.getElementById('name'), place = name.parentNode
        name.remove()
        place.append(name)
        return name.textContent""") == ""
        until(lambda: self.text("name") == "five", "an element that was put back")
        found = self.rows("value")
        assert [ref for ref in run("return [...document.querySelectorAll('#list > div')].map(e => e.row.name)")] == [
            name or None for name, _ in found]
        run("document.getElementById('list').setAttribute('limit', '3')")
        until(lambda: run(LIST) == found[:3], "no more rows than the limit")
        assert run("""const name = document.createElement('keyway-value')
        name.show({ values: { name: { a: 1 } } })
        return name.textContent""") == '{"a":1}'
        run("""window.problems = []
        addEventListener('problem', event => problems.push([event.target.id, event.detail.code]))
        const bad = document.createElement('keyway-value')
        bad.id = 'bad'
        bad.setAttribute('object', 'Nowhere/1')
        bad.setAttribute('key-path', 'name')
        document.body.prepend(bad)""")
        until(lambda: run("return problems") == [["bad", "unknown-entity"]], "a problem of an element")
        run("document.getElementById('bad').remove()")
        before = len(self.cells())
        run("""const far = document.createElement('p')
        far.style.marginTop = '50000px'
        far.innerHTML = '<keyway-value object="Item/6" key-path="name"></keyway-value>'
        document.body.append(far)""")
        time.sleep(0.5)
        assert len(self.cells()) == before, "an element that nobody has seen"
        run("document.body.lastElementChild.remove()")

    def scrolls(self):
        self.driver.execute_script("document.getElementById('long').scrollIntoView()")
        for place in [0, 5000, 90_000, 4000, 150_000, 199_000, 0]:
            self.driver.execute_script("document.getElementById('long').scrollTop = arguments[0]", place)
            time.sleep(0.1)
            assert self.visible() <= 100, "too many visible cells"
        self.server.ask("PUT", "/v1/objects/Item/10/value", 777)

        def is_right():
            seen = self.driver.execute_script(SEEN)
            values = {f"Item/{n}": self.server.ask("GET", f"/v1/objects/Item/{n}/value")[0] for n in range(30)}
            texts = {ref: "" if value is None else str(value) for ref, value in values.items()}
            return len(seen) > 20 and all(text == texts[ref] for ref, text in seen)
        until(is_right, "the values in sight")
        until(lambda: 20 < self.visible() <= 100, "visible cells")
        for place in range(0, 60_000, 3000):
            self.driver.execute_script("document.getElementById('long').scrollTop = arguments[0]", place)
            time.sleep(0.1)
        until(lambda: self.visible() <= 100, "visible cells")
        assert len(self.cells()) <= 250, "cells out of sight that have not ended"
        assert any(not cell["visible"] for cell in self.cells())

    def ends(self):
        self.driver.execute_script("document.getElementById('long').remove()")
        until(lambda: len(self.cells()) <= 4, "cells that end with their elements")
        self.driver.execute_script("document.body.replaceChildren()")
        until(lambda: not self.cells(), "no cells")
        self.driver.get("about:blank")
        until(lambda: not self.server.streams(), "a page that was left has no stream")

    def close(self):
        try:
            self.driver.quit()
        finally:
            self.server.close()


def main():
    elements = Elements(sys.argv[1])
    try:
        elements.run()
    finally:
        elements.close()
    print("all is shown as it is", flush=True)


main()
