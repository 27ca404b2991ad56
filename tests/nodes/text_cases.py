# SPDX-License-Identifier: Apache-2.0
"""Cases for the nodes that read texts out of the state: replies, chunks, scores."""

import itertools
import random

from cases_of_values import OTHERS, TEXTS, VALUES, plain

WORDS = ["The", "cat", "sat", "on", "the", "mat.", "naïve", "café", "x_y", "don't", "№5", "½", "日本", "語。", "Σίσυφος", "\u200b",
         "a-b", "...", "_", "١٢", "😀", "e\u0301", "CAT", "\u00a0", "\x1f", "ﬁn"]


def agent_reply():
    messages = [
        {"role": "assistant", "content": "hi"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": ""},
        {"role": "tool", "content": "out", "tool_call_id": "1"}, {"role": "system", "content": "s"},
        {"role": "assistant", "content": [{"type": "text", "text": "part"}]}, {"role": "assistant", "content": []},
        {"role": "assistant", "content": "  "}, {"role": "assistant", "content": "naïve 😀\n"},
    ]
    cases = [({}, {}, {"messages": list(chosen)}) for size in (1, 2, 3) for chosen in itertools.permutations(messages, size)][:300]
    cases += [({"fallback_message": text}, {}, {"messages": [messages[1]]}) for text in TEXTS]
    cases += [({"fallback_message": "{{inputs.f}}"}, {"f": value}, {}) for value in OTHERS]
    return cases + plain({}, {"fallback_message": 5}, {"fallback_message": None}, {"other": 1})


def document(text, **more):
    return {"id": "d", "content": text, **more}


def never_ends(size, overlap):
    """Whether the peer would cut without end (ours refuses it)."""
    try:
        return int(size) <= int(overlap) or int(size) < 1
    except (TypeError, ValueError):
        return False


def chunking():
    def stored(documents, key="document_loader", field="documents"):
        return {"node_results": {key: {field: documents}}}

    long = " ".join(f"w{i}é😀" for i in range(200))
    cases = []
    for size, overlap in itertools.product([1, 2, 5, 10, 100, 800, 5000, "7", " 7 ", "1_0", 3.0, True, "x", "", None, 0, -1, 2.5, []],
                                           [0, 1, 4, 80, "0", "2", -1, None, "y"]):
        if never_ends(size, overlap):
            continue
        cases.append(({"chunk_size": size, "chunk_overlap": overlap}, {}, stored([document("Hello wörld, this is 😀 text.")])))
    rng = random.Random(7)
    for _ in range(150):
        size = rng.randint(1, 60)
        text = "".join(rng.choice(["a", "é", "😀", " ", "\n", "xyz ", "."]) for _ in range(rng.randint(1, 120)))
        config = {"chunk_size": size, "chunk_overlap": rng.randint(0, size - 1)}
        cases.append((config, {}, stored([document(text, metadata={"k": rng.randint(0, 9), "source": "mine"})])))
    odd = [None, [], {}, "text", 5, ["x"], [{}], [{"id": "a"}], [{"id": 5, "content": "x"}], [{"id": "a", "content": ""}],
           [{"id": "a", "content": "  "}], [{"id": "a", "content": "x", "extra": 1}], [{"id": "a", "content": "x", "metadata": []}],
           [{"id": "a", "content": "x", "source": 5}], [{"id": "a", "content": "x", "source": None}], [document("ok"), document(" b ")],
           [document("x", metadata={"a": [1, {"b": None}], "chunk_index": "mine", "document_id": 7})], [document(5)], {"a": document("x")}]
    cases += [({}, {}, stored(documents)) for documents in odd]
    cases += [({}, {}, {"node_results": {"documents": documents}}) for documents in odd[:8] + [[document("top")]]]
    cases += [({"source_result_key": "s", "documents_field": "f"}, {}, stored([document("named")], "s", "f")),
              ({"source_result_key": "s"}, {}, {"node_results": {"s": 5, "documents": [document("other")]}}),
              ({"source_result_key": "s"}, {}, {"node_results": {"s": {"documents": None}, "documents": [document("other")]}}),
              ({"chunk_size": "{{inputs.n}}", "chunk_overlap": "{{inputs.o}}"}, {"n": 12, "o": 3}, stored([document(long)])),
              ({"chunk_size": "{{inputs.n}}", "chunk_overlap": "0"}, {"n": "9", "o": 3}, stored([document(long)])),
              ({"chunk_size": "{{inputs.n}}"}, {"n": 1.9}, stored([document("ab")])), ({"chunk_size": "{{zz}}"}, {}, stored([document("ab")]))]
    keys = [[], ["a"], ["a", "zz"], None, "a", [1], ["source"]]
    metadata = {"a": 1, "b": 2, "source": "s"}
    cases += [({"preserve_metadata_keys": chosen}, {}, stored([document("x", metadata=metadata, source="url")])) for chosen in keys]
    return cases + plain({}, {"source_result_key": 5}, {"documents_field": None})


def token_f1():
    rng = random.Random(11)
    cases = []
    for _ in range(250):
        count = rng.randint(0, 5)
        texts = [[" ".join(rng.choices(WORDS, k=rng.randint(0, 8))) for _ in range(count)] for _ in range(2)]
        cases.append(({"normalize": rng.random() < 0.7}, {"predictions": texts[0], "references": texts[1]}, {}))
    cases += [({}, {"predictions": [a], "references": [b]}, {}) for a, b in itertools.pairwise(VALUES)]
    cases += [({"normalize": False}, {"predictions": [a], "references": [b]}, {}) for a, b in itertools.pairwise(TEXTS)]
    tenths = [" ".join(["a"] * n) for n in range(1, 11)]
    cases.append(({}, {"predictions": tenths, "references": ["a b c"] * 10}, {}))
    odd = [None, [], {}, "x", 5, [1], ["x"], [None, True]]
    cases += [({}, {"predictions": a, "references": b}, {}) for a, b in itertools.product(odd, odd)]
    cases += [({"predictions_key": "p", "references_key": "r"}, {"p": ["x y"], "r": ["y"]}, {}),
              ({"predictions_key": "{{inputs.k}}"}, {"k": "p", "p": ["a"], "references": ["a"]}, {}), ({}, {}, {})]
    return cases + plain({"normalize": "maybe"}, {"normalize": "no"}, {"predictions_key": 5})


def code():
    return plain({}, {"x": 1}) + [({}, {"a": 1}, {"assistant_message": "x"})]


FAMILIES = {
    "AgentReplyExtractorNode": [agent_reply],
    "ChunkingStrategyNode": [chunking],
    "TokenF1MetricsNode": [token_f1],
    "CodeNode": [code],
}
