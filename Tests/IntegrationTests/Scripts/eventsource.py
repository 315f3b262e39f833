"""Prints what an EventSource in Chromium is told, one JSON object a line, until SIGTERM.

Usage: eventsource.py PAGE STREAM...
The page is opened first, so that the streams, given as paths, are of its origin. Each line has the number of its stream.
"""

import json
import signal
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

SCRIPT = """
window.told = [];
arguments[0].forEach((path, stream) => {
  const source = new EventSource(path);
  const names = ["open", "change", "gone", "reset", "bye", "heartbeat"];
  for (const name of names) source.addEventListener(name, event => {
    if (event.data === undefined) window.told.push({stream, event: "CONNECTED"});
    else window.told.push({stream, event: name, id: event.lastEventId, data: JSON.parse(event.data)});
  });
  source.addEventListener("error", () => window.told.push({stream, event: "ERROR", state: source.readyState}));
});
"""


def main():
    page, *streams = sys.argv[1:]
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    # A request to the driver is not to be cut in the middle: the loop ends when it can.
    signals = []
    signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.get(page)
        driver.execute_script(SCRIPT, streams)
        end = time.monotonic() + 3600
        while not signals and time.monotonic() < end:
            for event in driver.execute_script("return window.told.splice(0)"):
                print(json.dumps(event), flush=True)
            time.sleep(0.05)
    finally:
        driver.quit()


main()
