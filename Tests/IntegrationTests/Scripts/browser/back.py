"""Leaves a page with keyway.js in Chromium and comes back to it as the browser kept it: the page that was left has
neither stream nor cell on the server, and the one that came back shows what there is, told once.

Usage: back.py KEYWAY
"""

import pathlib
import sys
import tempfile

from world import MODULE, Server, chromium, until

PAGE = """<!doctype html>
<html lang="en"><title>values</title><p><a href="/other.html">other</a></p>
<keyway-value object="Item/1" key-path="value"></keyway-value>
<script type="module">
  import { Keyway } from '/module.js'
  window.kept = []
  window.told = []
  window.rows = []
  addEventListener('pageshow', event => kept.push(event.persisted))
  const keyway = new Keyway()
  keyway.observe('Item/1', ['value'], {}, change => told.push(change.new))
  const query = keyway.query({ entity: 'Item', sort: '-value', keys: ['value'] }, () => {
    window.rows = query.rows.map(row => row['@ref'])
  })
</script>
"""


def run(server, driver):
    def value(name):
        return driver.execute_script("return window[arguments[0]]", name)

    def shown():
        return driver.execute_script("return document.querySelector('keyway-value').textContent")

    for n in (1, 2):
        server.ask("PUT", f"/v1/objects/Item/{n}", {"value": n})
    driver.get(server.url + "/page.html")
    until(lambda: value("told") == [1] and value("rows") == ["Item/2", "Item/1"] and shown() == "1", "the first values")
    for round, number in enumerate((10, 20, 30)):
        driver.find_element("css selector", "a").click()
        until(lambda: driver.title == "other", "the other page")
        until(lambda: not server.streams(), "no stream of the page that was left")
        server.ask("PUT", "/v1/objects/Item/1/value", number)
        driver.back()
        until(lambda: driver.title == "values", "the page again")
        # It is the one that was left, with its variables, and not loaded anew.
        assert value("kept") == [False] + [True] * (round + 1), value("kept")
        until(lambda: shown() == str(number), "the value of meanwhile")
        until(lambda: value("rows") == ["Item/1", "Item/2"], "the rows of meanwhile")
        server.ask("PUT", "/v1/objects/Item/1/value", number + 1)
        until(lambda: shown() == str(number + 1), "a value afterwards")
        assert len(server.streams()) == 1
    until(lambda: value("told")[-1] == 31, "the last value")
    assert value("told") == [1, 10, 11, 20, 21, 30, 31], value("told")


def main():
    with tempfile.TemporaryDirectory(prefix="keyway-public-") as public:
        folder = pathlib.Path(public)
        (folder / "page.html").write_text(PAGE)
        (folder / "other.html").write_text("<!doctype html><html lang='en'><title>other</title><p>Another page.</p>")
        (folder / "module.js").write_text(MODULE.read_text())
        server = Server(sys.argv[1], public)
        try:
            server.start()
            driver = chromium()
            try:
                run(server, driver)
            finally:
                driver.quit()
        finally:
            server.close()
    print("all is shown as it is", flush=True)


main()
