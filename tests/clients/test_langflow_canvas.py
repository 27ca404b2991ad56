# SPDX-License-Identifier: Apache-2.0
"""A whole Langflow with caisson-langflow installed, its canvas in Debian's Chromium: the component is there, runs in a real
machine, and its files and its picture are seen. The screenshots stay in CAISSON_SCREENSHOTS.

Of Langflow and Playwright by langflow-server.txt. Exits with 77 where one is missing, or Chromium, or machines.
"""

import json
import os
import pathlib
import shutil
import unittest

if shutil.which("chromium") is None:
    print("skipped: there is no Chromium")
    raise SystemExit(77)
try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    print("skipped: there is no Playwright")
    raise SystemExit(77)
os.environ["CAISSON_TEST_DRIVER"] = os.environ.get("CAISSON_TEST_DRIVER", "jail")
os.environ.setdefault("LFX_LOG_LEVEL", "ERROR")

import httpx

import langflow_server
from service_under_test import Service

SERVICE = Service()
SERVICE.warm({"shape": "s-1vcpu-1gb"})

from caisson_langflow.components.caisson import CaissonSandboxComponent
from lfx.components.input_output import ChatOutput
from lfx.components.processing.parser import ParserComponent
from lfx.graph.graph.base import Graph

SCREENSHOTS = pathlib.Path(os.environ.get("CAISSON_SCREENSHOTS", "."))
PROGRAM = """
import os, struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
rows = b''.join(b'\\0' + b''.join(bytes((255 * x // 160, 255 * y // 120, 160)) for x in range(160)) for y in range(120))
with open(os.environ['CAISSON_ARTIFACTS'] + '/plot.png', 'wb') as file:
    file.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 160, 120, 8, 2, 0, 0, 0))
               + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
open(os.environ['CAISSON_ARTIFACTS'] + '/notes.txt', 'w').write('written in the machine')
print('ran on', os.uname().nodename)
"""


class Canvas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.langflow = langflow_server.Langflow(SERVICE)
        cls.addClassCleanup(cls.langflow.close)
        cls.langflow.wait()
        cls.http = cls.langflow.client()
        cls.addClassCleanup(cls.http.close)

    def test_1_the_server_knows_the_component(self):
        told = self.http.get("/api/v1/all").json()
        found = [one for listed in told.values() for one in listed.values() if one.get("display_name") == "Caisson Sandbox"]
        self.assertEqual(len(found), 1)
        self.assertEqual([one["name"] for one in found[0]["outputs"]], ["results", "files", "message"])
        log = pathlib.Path(self.langflow.folder, "log").read_text(errors="replace")
        self.assertEqual(log.count("caisson-langflow: warning: in the Langflow process"), 1, log[-3000:])

    def test_2_it_is_on_the_canvas_and_runs(self):
        sandbox = CaissonSandboxComponent(_id="CaissonSandbox-abcde", python_code=PROGRAM)
        shown = ChatOutput(_id="ChatOutput-abcde").set(input_value=sandbox.message_with_pictures)
        parsed = ParserComponent(_id="ParserComponent-abcde", pattern="{path}").set(input_data=sandbox.collected_files)
        data, other = (json.loads(json.dumps(Graph(sandbox, end).dump()["data"], default=str)) for end in (shown, parsed))
        data["nodes"] += [node for node in other["nodes"] if node["id"] == "ParserComponent-abcde"]
        data["edges"] += other["edges"]
        stock = [one for listed in self.http.get("/api/v1/all").json().values() for one in listed.values()]
        for number, node in enumerate(data["nodes"]):  # as if dragged from the sidebar
            title = node["data"]["node"]["display_name"]
            node["data"]["node"] = next(one for one in stock if one.get("display_name") == title)
            node |= {"position": {"x": 420 * number, "y": 0}, "type": "genericNode"}
            if title == "Caisson Sandbox":
                node["data"]["node"] = json.loads(json.dumps(node["data"]["node"]))
                node["data"]["node"]["template"]["python_code"]["value"] = PROGRAM
        flow = langflow_server.store(self.http, "In a machine", data)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            try:
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                page.set_default_timeout(120_000)
                expect.set_options(timeout=120_000)
                self.look(page, flow)
            except BaseException:
                page.screenshot(path=SCREENSHOTS / "langflow-failed.png")
                raise
            finally:
                browser.close()
        left = httpx.get(SERVICE.url + "/v1/sandboxes?limit=500", headers={"X-Api-Key": SERVICE.key}).json()["data"]["data"]
        self.assertEqual(left, [])

    def test_3_an_edited_copy_runs_as_the_server_s_own(self):
        sandbox = CaissonSandboxComponent(_id="CaissonSandbox-edited", python_code="print('as it was')")
        shown = ChatOutput(_id="ChatOutput-edited").set(input_value=sandbox.message_with_pictures)
        data = json.loads(json.dumps(Graph(sandbox, shown).dump()["data"], default=str))
        [node] = [node for node in data["nodes"] if node["id"] == "CaissonSandbox-edited"]
        code = node["data"]["node"]["template"]["code"]
        code["value"] += "\n\nimport pathlib\npathlib.Path(%r).write_text('ran')\n" % (self.langflow.folder + "/edited")
        told = langflow_server.build(self.http, langflow_server.store(self.http, "Edited", data))
        self.assertIn("as it was", json.dumps(told["ChatOutput-edited"]["data"]))
        self.assertFalse(pathlib.Path(self.langflow.folder, "edited").exists())

    def look(self, page, flow):
        page.goto(f"{self.langflow.url}/flow/{flow}")
        expect(page.get_by_text("Caisson Sandbox").first).to_be_visible()
        page.get_by_test_id("button_run_chat output").click()
        expect(page.get_by_text("built successfully").first).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "langflow-canvas.png")
        page.get_by_test_id("output-inspection-files-caissonsandbox").click()
        expect(page.get_by_text("notes.txt").first).to_be_visible()
        expect(page.get_by_text("plot.png").first).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "langflow-files.png")
        page.get_by_text("Close", exact=True).last.click()
        page.get_by_test_id("playground-btn-flow-io").click()
        expect(page.get_by_text("ran on lf-c-").first).to_be_visible()
        picture = page.locator('img[src*="/files/images/"]').first
        expect(picture).to_be_visible()
        page.wait_for_function("() => document.querySelector('img[src*=\"/files/images/\"]').naturalWidth === 160")
        page.screenshot(path=SCREENSHOTS / "langflow-playground.png")


if __name__ == "__main__":
    unittest.main(verbosity=2)
