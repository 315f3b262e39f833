"""Uses the application of the page "Your first application" in two tabs of Chromium; prints "done" in the end.

Usage: first_application.py SERVER [TOKEN | visitors]
SERVER is the server's URL. With a TOKEN the page signs in with it, as its visitor. With `visitors` the page shows who is
here, and that alone is tried.
"""

import json
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

TITLE = "Write <b>it</b> & more"

server = sys.argv[1]
choice = sys.argv[2] if len(sys.argv) > 2 else None
token = choice if choice != "visitors" else None

options = Options()
for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
    options.add_argument(argument)
driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
wait = WebDriverWait(driver, 300)


def rows():
    """What is shown: the titles, and whether each is done."""
    script = "return [...document.querySelectorAll('li')].map(i => [i.children[1].value, i.children[0].checked])"
    return driver.execute_script(script)


def shown(tab, expected):
    driver.switch_to.window(tab)
    wait.until(lambda _: rows() == expected, f"{expected} is not shown, but {rows()}")


def change(ref, key, value):
    """What another client does."""
    driver.execute_async_script("""
        const [path, body, done] = arguments
        const headers = { 'Content-Type': 'application/json' }
        fetch('/v1/objects/' + path, { method: 'PUT', headers, body }).then(r => done(r.status))""",
                                f"{ref}/{key}", json.dumps(value))


def editing():
    """The input of a title shows what is so, unless somebody is writing in it."""
    for title in ["first", "second", "third"]:
        field = driver.find_element(By.NAME, "title")
        field.send_keys(title)
        driver.find_element(By.CSS_SELECTOR, "form button").click()
        wait.until(lambda _: rows()[-1:] == [[title, False]], f"{title} is not there")
        wait.until(lambda _: field.get_attribute("value") == "", "the form keeps what was added")
    refs = driver.execute_async_script("""
        const done = arguments[0]
        fetch('/v1/objects/Task?sort=made').then(r => r.json()).then(page => done(page.objects.map(o => o['@ref'])))""")
    first, second, third = driver.find_elements(By.CSS_SELECTOR, "li input[aria-label=Title]")

    def shows(field, text, what):
        wait.until(lambda _: field.get_attribute("value") == text,
                   f"{what}: not {text} but {field.get_attribute('value')}")

    def says(role, text):
        line = driver.find_element(By.CSS_SELECTOR, f"[role={role}]")
        wait.until(lambda _: text in line.text if text else line.text == "", f"the {role} is not '{text}': {line.text}")
    # What is refused is not kept, with the focus or without.
    for key in [Keys.ENTER, Keys.TAB]:
        first.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE, key)
        says("alert", "'title'")
        shows(first, "first", "a title that was refused")
    first.send_keys("!", Keys.ENTER)
    shows(first, "first!", "a title that was written")
    # A success ends the problem, and says nothing of the connection.
    says("alert", "")
    says("status", "live")
    # Of others all is seen, but what is being written stays, and its focus, whatever becomes of the order.
    change(refs[0], "title", "theirs")
    shows(first, "theirs", "a title with the focus")
    third.send_keys("-x")
    change(refs[2], "title", "their third")
    change(refs[0], "done", True)
    change(refs[1], "title", "their second")
    shows(second, "their second", "the title of another")
    wait.until(lambda _: [title for title, _ in rows()] == ["their second", "third-x", "theirs"], f"{rows()}")
    assert driver.switch_to.active_element == third, "the focus is lost"
    third.send_keys(Keys.BACKSPACE, Keys.BACKSPACE, Keys.TAB)
    shows(third, "their third", "a title that was left as it was")
    # Without a network nothing is written, and the page says why.
    driver.set_network_conditions(offline=True, latency=0, throughput=-1)
    second.send_keys("?", Keys.ENTER)
    says("alert", "offline")
    shows(second, "their second?", "a title that did not reach the server")
    driver.execute_script("dispatchEvent(new Event('pagehide'))")
    says("status", "waiting")
    second.send_keys(Keys.TAB)
    shows(second, "their second?", "a title that did not reach the server, and was left")
    driver.delete_network_conditions()
    driver.execute_script("dispatchEvent(new Event('pageshow'))")
    says("status", "live")
    says("alert", "offline")
    second.send_keys(Keys.ENTER)
    says("alert", "")
    wait.until(lambda _: ["their second?", False] in rows(), "a title that was tried once more")
    change(refs[1], "title", "their fourth")
    shows(second, "their fourth", "a title that was written at last")
    for button in driver.find_elements(By.CSS_SELECTOR, "li button"):
        button.click()
    wait.until(lambda _: rows() == [], "objects that were deleted")


def here(expected):
    wait.until(lambda _: driver.find_element(By.TAG_NAME, "output").text == expected, f"{expected} are not shown")


def visitors():
    """Ann and Bob come, and Bob's tab is closed."""
    driver.get(server + "/?name=Ann")
    first = driver.current_window_handle
    here("Ann")
    driver.switch_to.new_window("tab")
    driver.get(server + "/?name=Bob")
    here("Ann, Bob")
    second = driver.current_window_handle
    driver.switch_to.window(first)
    here("Ann, Bob")
    driver.switch_to.window(second)
    driver.close()
    driver.switch_to.window(first)
    here("Ann")


try:
    if choice == "visitors":
        visitors()
        print("done")
        sys.exit()
    driver.get(server)
    if token:
        script = """
        const [token, done] = arguments;
        fetch('/v1/session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } }).then(r => done(r.status))
        """
        status = driver.execute_async_script(script, token)
        assert status == 204, f"signing in is answered {status}"
        driver.refresh()
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(server)
    second = driver.current_window_handle

    editing()
    driver.switch_to.window(first)
    driver.find_element(By.NAME, "title").send_keys(TITLE)
    driver.find_element(By.CSS_SELECTOR, "form button").click()
    shown(second, [[TITLE, False]])

    driver.find_element(By.CSS_SELECTOR, "li input[aria-label=Done]").click()
    shown(first, [[TITLE, True]])

    title = driver.find_element(By.CSS_SELECTOR, "li input[aria-label=Title]")
    title.send_keys(Keys.CONTROL, "a", Keys.NULL, "Another", Keys.TAB)
    shown(second, [["Another", True]])

    driver.find_element(By.CSS_SELECTOR, "li button").click()
    shown(first, [])
    assert driver.find_elements(By.TAG_NAME, "b") == []
    print("done")
finally:
    driver.quit()
