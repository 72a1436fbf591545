"""The widgets in a real browser: change a control, read what the page then says."""

from __future__ import annotations

import time

import nbformat

LADDER = """\
from modtools.teaching.ladder import Ladder
ladder = Ladder()
ladder.widget('{"name": "read_file", "arguments": {"path": "shop/prices.py"}}')"""
SIDE = """\
from modtools.lab.tasks import task_by_id
from modtools.sandbox import strongest_level
from modtools.teaching.side_by_side import side_by_side
side_by_side({"one": task_by_id("set_value-2-0001"), "two": task_by_id("rename-3-0001")}, strongest_level())"""

MASKS = """\
from modtools.masking import Vocabulary, compile_json_schema
from modtools.teaching.mask_explorer import mask_explorer
path = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
words = Vocabulary.from_bytes([b"", *(bytes([i]) for i in range(256)), b"pat", b'{"', b'"}'], eos_id=0)
mask_explorer({"closed": compile_json_schema(path | {"required": ["path"]})}, words, '{"')"""


BREAK = """\
from modtools.teaching.broken_masks import break_a_mask
break_a_mask()"""
MUSEUM = """\
from modtools.teaching.museum import museum
museum()"""
STATES = """\
from modtools.teaching.state_inspector import state_inspector
state_inspector()"""
BENCH = """\
from modtools.teaching.policy_bench import policy_bench
policy_bench()"""
STEPPER = """\
from modtools.teaching.lifecycle_stepper import lifecycle_stepper
lifecycle_stepper()"""


def open_and_run(browser, jupyter, name: str, *cells: str) -> None:
    """Write a notebook, open it, run it all, and wait until the kernel is idle with output on the page."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    folder, address = jupyter
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    }
    nbformat.write(notebook, folder / name)
    browser.get(address(name))
    wait = WebDriverWait(browser, 120)
    wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "[data-status='idle']"))
    time.sleep(2)  # the menus come after the kernel
    for item in browser.find_elements(By.CSS_SELECTOR, ".lm-MenuBar-item"):
        if item.text == "Run":
            item.click()
    wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "li[data-command='runmenu:run-all']"))[0].click()
    wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, ".jp-OutputArea .widget-html table"))


def shown(browser) -> str:
    from selenium.webdriver.common.by import By

    return "\n".join(part.text for part in browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea .widget-html"))


def wait_for(browser, text: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(lambda page: text in shown(page), message=f"never saw {text!r}")


def test_editing_the_reply_moves_the_ladder(browser, jupyter):
    from selenium.webdriver.common.by import By

    open_and_run(browser, jupyter, "ladder.ipynb", LADDER)
    wait_for(browser, "Outcome: success")
    box = browser.find_element(By.CSS_SELECTOR, ".jp-OutputArea textarea")
    box.clear()
    box.send_keys('{"name": "read_file", "arguments": {"path": "shop/none.py"}}')
    wait_for(browser, "missing_path")
    assert "stopped here" in shown(browser) and "Only a grammar that knows the state of the world" in shown(browser)


def test_the_three_surfaces_stand_side_by_side_and_the_slider_moves_them(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_and_run(browser, jupyter, "side.ipynb", SIDE)
    wait_for(browser, "call 1 of 2")
    assert "op: search" in shown(browser) and "search_files" in shown(browser) and "run_python" in shown(browser)
    browser.find_element(By.CSS_SELECTOR, ".noUi-handle").send_keys(Keys.ARROW_RIGHT)
    wait_for(browser, "call 2 of 2")
    assert "done after 1" in shown(browser)


def test_typing_a_prefix_changes_what_the_mask_explorer_allows(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    open_and_run(browser, jupyter, "masks.ipynb", MASKS)
    wait_for(browser, "2 of 260 tokens")
    prefix, token = browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea textarea")
    prefix.send_keys("p")
    wait_for(browser, "1 of 260 tokens")
    assert "No model here" in shown(browser) and "in a key that may become 'path'" in shown(browser)
    token.send_keys("q")
    wait_for(browser, "cannot follow; one of 'a' can")
    browser.find_element(By.CSS_SELECTOR, ".noUi-handle").send_keys(Keys.ARROW_RIGHT)
    wait_for(browser, "2 of 260 tokens")


def test_another_mask_shows_its_code_its_verdicts_and_a_witness(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    open_and_run(browser, jupyter, "break.ipynb", BREAK)
    wait_for(browser, "def right")
    assert "fails" not in shown(browser)
    Select(browser.find_element(By.CSS_SELECTOR, ".jp-OutputArea select")).select_by_visible_text("canonical_only")
    wait_for(browser, "def canonical_only")
    assert "fails" in shown(browser) and "after «» it refuses «{»" in shown(browser)


def test_another_exhibit_shows_its_document_and_its_report(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    open_and_run(browser, jupyter, "museum.ipynb", MUSEUM)
    wait_for(browser, "dottxt-ai/outlines/issues/935")
    choice = Select(browser.find_element(By.CSS_SELECTOR, ".jp-OutputArea select"))
    choice.select_by_visible_text("a token that holds half a character")
    wait_for(browser, "ggml-org/llama.cpp/issues/2501")
    assert "refuses it: not complete" in shown(browser) and "writes it" in shown(browser)


def test_another_choice_changes_the_five_states(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    open_and_run(browser, jupyter, "states.ipynb", STATES)
    wait_for(browser, "The call ended in success")
    boxes = browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea select")
    Select(boxes[3]).select_by_visible_text("breaks on the way")
    wait_for(browser, "The call ended in unknown_outcome")
    Select(boxes[4]).select_by_visible_text("before the call")
    wait_for(browser, "The call ended in unavailable_tool")
    assert "revoked: withdrawn" in shown(browser)


def test_a_rule_that_is_ticked_off_changes_the_verdict(browser, jupyter):
    from selenium.webdriver.common.by import By

    open_and_run(browser, jupyter, "bench.ipynb", BENCH)
    wait_for(browser, "✗ deny, rule acme writes to no customer today")
    boxes = browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea input[type='checkbox']")
    approved, _, tenant, disputed = boxes[:4]
    tenant.click()
    wait_for(browser, "✗ deny, rule batch b-7 is disputed")
    disputed.click()
    wait_for(browser, "? ask, rule a person looks before a high risk")
    approved.click()
    wait_for(browser, "✓ allow, rule this session may send")
    assert "lifted by the approval" in shown(browser)


def test_choosing_a_fault_and_a_tool_shows_where_the_call_ended(browser, jupyter):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    open_and_run(browser, jupyter, "stepper.ipynb", STEPPER)
    wait_for(browser, "Outcome: success")
    assert "ended here" not in shown(browser)
    fault, tool = (Select(box) for box in browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea select"))
    fault.select_by_visible_text("raises, at execute")
    wait_for(browser, "Outcome: unknown_outcome. Work done: once")
    assert "the call ended here" in shown(browser) and "look before you try again" in shown(browser)
    tool.select_by_visible_text("reads")
    wait_for(browser, "Outcome: unavailable_tool. Work done: once")
