# SPDX-License-Identifier: Apache-2.0
"""Cases for the nodes that write into stores. Beside what a node gives, the stores' contents are
compared; a case is (config, inputs, state, items that are there before)."""

import itertools

from cases_of_values import OTHERS, TEXTS, VALUES

EMPTY = {}


def file_upload():
    base = {"content": "a,b\n1,2\n", "filename": "r.csv"}
    cases = [(base | {"content": text, "filename": text, "mime_type": text}, {}, {}, EMPTY) for text in TEXTS]
    cases += [(base | {"mime_type": mime}, {}, {}, EMPTY) for mime in ("text/csv", "", 5, None)]
    cases += [(base | {"content": "{{inputs.v}}"}, {"v": text}, {}, EMPTY) for text in TEXTS]
    cases += [(base | {"content": "x {{inputs.v}} y"}, {"v": value}, {}, EMPTY) for value in VALUES]
    cases += [(config, {}, {}, EMPTY) for config in ({}, {"content": "x"}, {"filename": "x"}, {"content": 5, "filename": "x"}, {"content": "x", "filename": None})]
    return cases


def append_message():
    base = {"key": "chat:1", "content": "hello"}
    there = {"agent_chat_history": {"chat:1": {"version": 3, "messages": [{"role": "user", "content": "q"}], "more": [1]}}}
    cases = [(base, {}, {}, EMPTY), (base, {}, {}, there)]
    for version in (None, True, 1.5, "x", 0, -4, 2**62, [], {}):
        cases.append((base, {}, {}, {"agent_chat_history": {"chat:1": {"version": version, "messages": "odd"}}}))
    cases += [(base, {}, {}, {"agent_chat_history": {"chat:1": value}}) for value in ({}, {"messages": None}, {"messages": {}}, {"version": 2})]
    for space in ([], ["a"], ["a", "b"], [" a ", "", "  "], ["a", "{{inputs.s}}"], "a", None, [1], ["é"]):
        cases.append((base | {"namespace": space}, {"s": "resolved"}, {}, EMPTY))
    for workspace in ("w", " w ", "", "  ", 5, None):
        cases.append((base, {}, {"workspace_id": workspace}, EMPTY))
    cases += [(base | {"key": key}, {"k": value}, {}, EMPTY) for key, value in
              itertools.product(["{{inputs.k}}", "chat:{{inputs.k}}", " {{inputs.k}} ", "{{zz}}", "a{{zz}}b", "", "  ", "x}}", "{{"], ["v", 5, 1.5, True, None, ["l"], " "])]
    cases += [(base | {"content": content}, {"c": value}, {}, there) for content in ("{{inputs.c}}", "x {{inputs.c}}") for value in VALUES]
    cases += [(base | {"role": role}, {"r": value}, {}, EMPTY) for role in ("user", "", "{{inputs.r}}", 5, None) for value in OTHERS]
    cases += [(base | {"content": text, "key": text}, {}, {}, EMPTY) for text in TEXTS]
    cases += [(config, {}, {}, EMPTY) for config in ({}, {"key": "a"}, {"content": "a"}, {"key": 5, "content": "a"}, {"key": "a", "content": None})]
    return cases


FAMILIES = {
    "FileUploadNode": file_upload,
    "GraphStoreAppendMessageNode": append_message,
}
