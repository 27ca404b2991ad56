# SPDX-License-Identifier: Apache-2.0
"""What the native nodes are tried on: for each type a list of (config, inputs, state), where `state`
are state fields that a node before it sets."""

import itertools

import text_cases
import trigger_cases
from cases_of_values import CONVERSIONS, NUMBERS, OTHERS, TEXTS, VALUES, plain

def set_variable():
    configs = [
        {}, {"variables": {}}, {"variables": {"a": 1}}, {"variables": {"a.b.c": 1, "a.b.d": [2]}},
        {"variables": {"a": {"b": {"c": 1}}, "a.b.d": 2}}, {"variables": {"a.b": 1, "a": {"c": 2}}},
        {"variables": {"a.b": 1, "a": 5}}, {"variables": {"a": 5, "a.b": 1}}, {"variables": {" x . y ": 1}},
        {"variables": {".": 1}}, {"variables": {"..a..b": 1}}, {"variables": {"a.": 1}},
        {"variables": {"inputs": {"z": 1}}}, {"variables": {"inputs": None}}, {"variables": {"inputs.z": 1}},
        {"variables": {"node_results": {"x": 1}, "y": 2}}, {"variables": {"node_results": {"n": {"x": 1}}, "y": 2}},
        {"variables": {"node_results": 5}}, {"variables": {"node_results": {"n": 5}}},
        {"variables": {"messages": [{"role": "user", "content": "hi", "id": "1"}]}},
        {"variables": {"assistant_message": "hey", "structured_response": [1]}},
        {"variables": []}, {"variables": "x"}, {"variables": None}, {"other": 1},
        {"variables": {"a": {"x": {"y": 1}}, "b": {"x": []}, "a.x": {"z": 2}}},
        {"variables": {"a": "{{inputs.o}}", "a.p": 5}}, {"variables": {"deep": {"k": [1, {"m": "{{inputs.n}}"}]}}},
    ]
    inputs = {"o": {"p": 1, "q": {"r": 2}}, "n": 3}
    return [(config, inputs, {}) for config in configs]


TEMPLATES = [
    "{{a.x}}", "val={{ a.x }}!", "x{{a.d}}", "{{a.d.k}}", "{{a.x}}{{a.s}}", "{{inputs.n}} {{inputs.b}} {{inputs.f}}",
    "{{inputs.none}}", "t {{inputs.none}}", "{{{a.x}}}", "{{}}", "{{ }}", "{{a.d.k.0}}", "{{ inputs . name }}",
    "{{inputs.name}}", " {{inputs.name}} ", "\n{{inputs.name}}\t", "{{inputs}}", "{{node_results.a.x}}",
    "{{node_results}}", "{{missing}}", "{{missing}} {{a.x}}", "{{a.missing}}", "{{a}}", "{{inputs.big}} {{inputs.float}}",
    "{{a.x}", "{a.x}}", "{{a.x}} {{", "}} {{a.x}}", "{{a{{b}}", "{{a.x}}}}", "{{{{a.x}}}}", "{{a.x\n}}", "{{\na.x}}",
    "{{inputs.name}}{{inputs.name}}", "\u00a0{{a.x}}\u2003", "{{\u00a0a.x\u00a0}}", "{{a..x}}", "{{.a}}", "{{a.}}",
    "{{messages}}", "{{workspace_id}}", "{{structured_response}}", "{{config.tags}}", "{{config.configurable.thread_id}}",
    "[not a credential]", "[[ ]]", "[[\n]]", "{{inputs.tmpl}}", "x {{inputs.tmpl}}", "{{inputs.list}}", "{{ inputs.e }}",
    "{{inputs.tiny}} {{inputs.huge}} {{inputs.neg}}", ["{{a.x}}", ["{{a.s}}"], {"{{a.x}}": "{{a.x}}"}], "{{f}}", "{{none}}",
]


def templates():
    inputs = {
        "name": "Bob", "n": 3, "b": True, "f": 1.5, "none": None, "big": 10**25, "float": 1e16, "tmpl": "{{inputs.name}}",
        "list": [1, "2", None], "e": "", "tiny": 5e-324, "huge": 1.7976931348623157e308, "neg": -0.0,
    }
    state = {"node_results": {"a": {"x": 5, "d": {"k": [1, 2]}, "s": "str"}, "f": False, "none": None, "inputs": 1}}
    return [({"variables": {"v": template}}, inputs, state) for template in TEMPLATES]


def for_loop():
    base = [{"items": []}, {"items": [1, 2]}, {"items": "x"}, {"items": "{{inputs.l}}"}, {"items": 5}, {}, {"items": None}]
    cases = [(config, {"l": [1, 2, 3]}, {}) for config in base]
    for index in [0, 1, 2, 3, 7, -1, -3, -4, None, "1", "x", 1.9, True, [1], 10**30, -(10**30)]:
        cases.append(({"items": [1, 2, 3]}, {}, {"node_results": {"n": {"index": index}}}))
    cases += [({"items": [1]}, {}, {"node_results": {"n": value}}) for value in (5, [], {}, None, {"index": 1})]
    return cases


def debug():
    state = {"node_results": {"a": {"b": [10, {"c": None}], "": 1, " x ": 2}, "l": [[1]]}}
    paths = ["a", "a.b", "a.b.0", "a.b.1.c", "a.b.2", "a.b.-1", "a.b.x", " a . b ", "l.0.0", "l.+0", "l. 0", "l.0_0",
             "", ".", " ", "a.b.0.x", "zz", "a..b", None, "{{inputs.p}}", "l.٠"]
    cases = [({"tap_path": path, "message": "m"}, {"p": "a.b"}, state) for path in paths]
    return cases + [({"include_state": flag}, {"q": 1}, state) for flag in (True, "yes", 1, "maybe", None, 0.0)] + plain(
        {}, {"message": 5}, {"message": None, "tap_path": "x"}
    )


def merge():
    dicts = [{"a": 1, "n": {"x": 1, "l": [1]}}, {"b": 2, "n": {"y": 2, "l": [2]}}, {"n": 5}, {"n": {"z": 1}}]
    lists = [[1, 2], [2, 3, "a"], ["a", None, True, 1.0, 0, False]]
    odd = [[[1]], [{"a": 1}], [1], ["ab"], [None], [{"a": 1}, [1]], [[1], {"a": 1}], [[1], "ab"], [[2**60, float(2**60), 2.5]]]
    cases = []
    for mode, deep, unique in itertools.product(["auto", "dict", "list"], [True, False], [True, False]):
        for items in [[], dicts, dicts[:2], lists, *odd]:
            cases.append({"items": items, "mode": mode, "deep": deep, "deduplicate": unique})
    return plain(*cases, {}, {"mode": "x"}, {"items": {}}, {"items": "x"}, {"items": None}, {"deep": 5})


def json_processing():
    documents = ['{"a": [1, {"b": null}], "c": "x"}', "[]", "1", '"s"', " null ", "{", "", '{"a":1,"a":2}', "[1,2,]",
                 "1e999", "123456789012345678901234567890", '"\\u00e9\\ud83d\\ude00"', "01", "'a'", "true false"]
    cases = [{"input_data": document} for document in documents]
    cases += [{"input_data": value} for value in OTHERS + NUMBERS]
    shapes = [{"a": [1, {"b": None}], "c": "x\u00e9\u007f\u2028😀\"\\\n\t\x01"}, [], {}, [[], {}], "text", None, 1e16, 10**30,
              {"k": {"l": {"m": [1, [2]]}}}]
    for indent, ascii_only, shape in itertools.product([None, 0, 1, 2, 4, -1, True, "3"], [True, False], shapes):
        cases.append({"operation": "stringify", "input_data": shape, "indent": indent, "ensure_ascii": ascii_only})
    paths = ["a", "a.0", "a.1.b", "a.2", "a.-1", "c", "c.0", " a . 1 ", "", ".", "zz", "a.x", "a.１", "a.²", None]
    for path, data in itertools.product(paths, [documents[0], {"a": [1, {"b": 2}], "c": "x"}]):
        cases.append({"operation": "extract", "input_data": data, "path": path, "default": "d"})
    cases += [{}, {"operation": "x", "input_data": 1}, {"operation": "stringify", "input_data": 1, "indent": "x"},
              {"operation": "extract", "input_data": "{", "path": "a"}, {"input_data": 1, "path": 5}]
    return plain(*cases)


def data_transform():
    cases = []
    for conversion, value in itertools.product(CONVERSIONS, VALUES):
        cases.append({"input_data": {"v": value}, "transforms": [{"source": "v", "target": "t", "transform": conversion}]})
    data = {"a": {"b": [1, {"c": "x"}]}, "n": None, "s": "Text"}
    steps = [
        [{"source": "a.b.1.c", "target": "x.y.z"}], [{"source": "a.b.9", "target": "x", "default": 5}],
        [{"source": "a.b.9", "target": "x", "default": 5, "when_missing": "skip"}], [{"target": "x", "default": 1}],
        [{"target": "x", "when_missing": "skip"}], [{"source": "n", "target": "x", "default": 7}],
        [{"source": "s", "target": "x"}, {"source": "s", "target": "x.y"}], [{"source": "s", "target": "."}],
        [{"source": "", "target": "x"}], [{"source": "s", "target": ""}], [{"source": "s"}], [{"target": 5}], ["x"],
        [{"source": "s", "target": "x", "transform": "nope"}], [{"source": "s", "target": "x", "extra": 1}], "x", {},
        [{"source": "a.b", "target": "l"}, {"source": "a", "target": "l.m"}, {"source": "s", "target": "l.m.b"}],
        [{"source": "{{inputs.p}}", "target": "{{inputs.t}}", "default": "{{inputs.p}}"}],
        [{"source": None, "target": "q", "default": "{{inputs.p}}"}],
    ]
    result = plain(*cases)
    result += [({"input_data": data, "transforms": step}, {"p": "a.b.0", "t": "u.v"}, {}) for step in steps]
    return result + plain({}, {"input_data": [1, {"a": 2}], "transforms": [{"source": "1.a", "target": "x"}]},
                          {"input_data": "text", "transforms": [{"source": "0", "target": "x"}]})


HTML = [
    "&amp;", "&amp", "&ampx", "&lt;b&gt;", "&copy; &copy 2020", "&notit; &notin;", "&#65;&#x41;&#X41", "&#0; &#128; &#x80;",
    "&#13;", "&#xd800; &#x110000; &#99999999999;", "&#1; &#x7f; &#xfdd0; &#xffff; &#x1fffe;", "&unknown; &;", "& &&amp;&",
    "&nbsp;x&nbsp", "&NotEqualTilde; &ThickSpace;", "&#;", "&#x;", "&AMP &AMP;", "&CounterClockwiseContourIntegral;",
    "&CounterClockwiseContourIntegral", "a < b & c > \"d\" 'e'", "&#x1F600;", "&amp;amp;lt;", "&hellip", "&hellip;",
    "&\u00e9amp;", "&am\u00e9p", "&notinva;", "&" + "a" * 40 + ";", "&acE;", "&#38;lt;", "&lt;&#115;cript&gt;", "&ampamp;",
]


def html_text():
    operations = [["unescape"], ["escape"], ["normalize_nbsp"], ["unescape", "normalize_nbsp"], ["escape", "escape"], []]
    cases = [{"input_data": text, "operations": list(chosen)} for text in HTML + TEXTS for chosen in operations[:4]]
    tree = {"t": "&lt;", "l": [{"t": "&gt;", "u": "&amp;"}, "&amp;", 5], "d": {"t": "&quot;", "x": None}}
    for fields in [None, [], ["t"], ["l"], ["l.t"], ["l.0.t"], ["d.t", "t"], ["zz"], [""], ["."], ["d..t"], [" t "], ["t.x"]]:
        cases += [{"input_data": tree, "operations": list(chosen), "fields": fields} for chosen in operations]
    return plain(*cases, {}, {"input_data": 5}, {"input_data": "x", "operations": ["y"]}, {"input_data": "x", "fields": "t"},
                 {"input_data": ["&lt;"], "fields": ["t"]}, {"input_data": "x", "operations": "escape"})


def manual_trigger():
    return plain(
        {}, {"label": " x "}, {"label": "  "}, {"label": 5}, {"allowed_actors": ["a", " A ", "", "b", "É", "é"]},
        {"allowed_actors": [1]}, {"require_comment": "yes"}, {"require_comment": "maybe"}, {"cooldown_seconds": 5},
        {"cooldown_seconds": -1}, {"cooldown_seconds": "7"}, {"cooldown_seconds": 1.5}, {"default_payload": {"a": [1]}},
        {"default_payload": []}, {"trigger_type": "other"}, {"trigger_type": None}, {"cooldown_seconds": "7.0"},
    )


def router():
    decisions = [
        {"action": "route", "branch": "b1", "x": 1}, {"action": " route ", "branch": " b "}, {"action": "route", "branch": ""},
        {"action": "respond", "message": " hi "}, {"action": "respond"}, {}, None, 5, "text", [], {"action": 0, "message": 0},
        {"action": "route", "branch": 7, "x": None, "y": ""}, {"action": True, "message": ["a"]}, {"message": {"a": 1}},
    ]
    cases = []
    for decision in decisions:
        config = {"assistant_message_fallback": "F", "carried_fields": ["x", "y", "zz"]}
        cases.append((config, {}, {"structured_response": decision}))
    state = {"structured_response": {"a": "go", "b": "left", "m": "msg", "routing": 3}}
    custom = {"action_field": "a", "route_action_value": "go", "branch_field": "b", "routing_field": "to", "message_field": "m"}
    cases.append((custom, {}, state))
    cases.append(({**custom, "route_action_value": "no", "respond_action_value": "r"}, {}, state))
    cases.append(({"structured_response_key": "inputs", "assistant_message_fallback": "F"}, {"action": "route", "branch": "q"}, {}))
    cases.append(({"structured_response_key": "zz", "assistant_message_fallback": "F"}, {}, {}))
    return cases + plain({"carried_fields": "x"}, {"action_field": 5})


def extract_message():
    responses = [{"assistant_message": "hi"}, {"assistant_message": " "}, {"assistant_message": 5}, {}, None, "x",
                 {"other": "o"}, {"assistant_message": " padded "}]
    cases = [({}, {}, {"structured_response": response}) for response in responses]
    cases += [({"message_field": "other", "fallback_message": "F"}, {}, {"structured_response": r}) for r in responses]
    return cases + [({"structured_response_key": "inputs"}, {"assistant_message": "in"}, {})] + plain({"message_field": None})


def sub_workflow():
    def step(kind, **config):
        return {"type": kind, **config}

    one = step("SetVariableNode", name="s1", variables={"x": "{{inputs.n}}", "later": "{{s0.v}}"})
    two = step("SetVariableNode", name="s2", variables={"y": "{{s1.x}}", "own": "{{node_results.s1.x}}"})
    configs = [
        {}, {"steps": []}, {"steps": [one]}, {"steps": [one, two]}, {"steps": [two, one]},
        {"steps": [one, two], "result_step": "s1"}, {"steps": [one, two], "result_step": "zz"},
        {"steps": [one, two], "include_state": True}, {"steps": [one, two], "propagate_to_parent": True},
        {"steps": [step("SetVariableNode", variables={"a": 1})]}, {"steps": [{"variables": {}}]}, {"steps": [step("Nope")]},
        {"steps": [step("")]}, {"steps": ["x"]}, {"steps": "x"}, {"steps": [step("DelayNode", duration_seconds=-1)]},
        {"steps": [step("DelayNode", name="d", duration_seconds="0")]},
        {"steps": [step("SetVariableNode", name="s", variables={"inputs": {"n": 9}}),
                   step("SetVariableNode", name="t", variables={"v": "{{inputs.n}}"})]},
        {"steps": [step("SetVariableNode", name="a", variables={"v": "new"}),
                   step("SetVariableNode", name="b", variables={"v": "{{a.v}}"})]},
        {"steps": [step("SetVariableNode", name="s", variables={"v": "{{workspace_id}}", "w": "{{messages}}"})]},
        {"steps": [step("SubWorkflowNode", name="in", steps=[step("SetVariableNode", name="q", variables={"v": "{{inputs.n}}"})])]},
        {"steps": [step("SetVariableNode", name="n", variables={"v": 1})], "propagate_to_parent": True},
        {"steps": [step("ForLoopNode", name="f", items=[1, 2]), step("ForLoopNode", name="f", items=[1, 2])]},
        {"steps": [step("SetVariableNode", name="m", variables={"node_results": {"zz": 1}, "k": 2})]},
        {"steps": [step("MergeNode", name="m", items=["{{inputs.o}}", {"z": 1}])]},
    ]
    state = {"node_results": {"a": {"v": "old"}}}
    return [(config, {"n": 3, "o": {"p": 1}}, state) for config in configs]


MESSAGES = [
    {"role": "user", "content": "hi"}, "plain", ["user", "hi"], ["user", "hi", "x"], 5, None, {"role": "zz", "content": "x"},
    {"content": "x"}, {"role": "user"}, {"role": "user", "content": None}, {"role": "user", "content": ["a", {"type": "text"}]},
    {"role": "user", "content": "x", "name": "bob", "foo": 1}, {"role": "developer", "content": "x"},
    {"role": "tool", "content": "x", "tool_call_id": "1"}, {"role": "tool", "content": "x"}, {"role": "user", "content": 5},
    {"role": "ai", "content": "x", "tool_calls": [{"name": "f", "args": {}, "id": "1"}]}, {"role": "ai", "content": {"a": 1}},
    {"role": "ai", "content": "x", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
    {"role": "user", "content": "a", "id": 5}, {"role": "user", "content": "a", "name": 5}, {"role": "function", "content": "x"},
    {"role": "function", "content": "x", "name": "f"}, {"role": "tool", "content": {"a": 1}, "tool_call_id": 1},
    {"role": "tool", "content": "x", "tool_call_id": "1", "status": "error", "artifact": {"a": 1}},
    {"role": "user", "content": "x", "additional_kwargs": {"q": 1}, "z": 2, "response_metadata": {"m": 1}},
    {"role": "user", "content": "x", "example": True}, {"role": "user", "type": "ai", "content": "x"},
    {"lc": 1, "type": "constructor", "id": ["a", "AIMessage"], "kwargs": {"content": "q"}}, {"role": "user", "content": []},
    {"type": "human", "content": "again", "id": "seed"}, {"type": "remove", "content": "", "id": "seed"},
    {"type": "remove", "content": "", "id": "nope"}, {"type": "remove", "content": "", "id": "__remove_all__"},
]


def messages():
    state = {"messages": [{"role": "user", "content": "first", "id": "seed"}]}
    cases = [({"variables": {"messages": [message]}}, {}, state) for message in MESSAGES]
    cases += [({"variables": {"messages": message}}, {}, state) for message in MESSAGES]
    return cases + [({"variables": {"messages": MESSAGES[:1] + [{"role": "ai", "content": "b", "id": "seed"}, "c"]}}, {}, state)]


def delay():
    return plain(*({"duration_seconds": value} for value in
                   (0, 0.0, "0", " 0.001 ", True, False, -1, -0.0, "x", None, [], "nan", "-inf", 1e-3, 10**400)), {})


FAMILIES = {
    "SetVariableNode": [set_variable, templates, messages],
    "DelayNode": [delay],
    "ForLoopNode": [for_loop],
    "DebugNode": [debug],
    "MergeNode": [merge],
    "JsonProcessingNode": [json_processing],
    "DataTransformNode": [data_transform],
    "HtmlTextTransformNode": [html_text],
    "NoOpTaskNode": [lambda: plain({}, {"x": 1})],
    "ManualTriggerNode": [manual_trigger],
    "StructuredRouterDispatchNode": [router],
    "ExtractAIMessageNode": [extract_message],
    "SubWorkflowNode": [sub_workflow],
    # HumanInputNode ends a run with a question; its cases are those of tests of resumed runs.
} | text_cases.FAMILIES | trigger_cases.FAMILIES


def builtin(name, kind, config):
    return {"kind": "builtin", "id": name, "type": kind, "config": config}


def single(kind, config, inputs, state):
    """The request that runs one node after one that sets `state`."""
    nodes = [builtin("n", kind, config)]
    edges = []
    if state:
        nodes.append(builtin("0", "SetVariableNode", {"variables": state}))
        edges.append({"source": "0", "target": "n"})
    ir = {"schema_version": 1, "entrypoint": "0" if state else "n", "nodes": nodes, "edges": edges}
    return {"ir": ir, "inputs": inputs}


def all_cases(families=None):
    for kind, makers in (families or FAMILIES).items():
        for maker in makers:
            for config, inputs, state in maker():
                yield kind, single(kind, config, inputs, state)
