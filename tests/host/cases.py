# SPDX-License-Identifier: Apache-2.0
"""One run of a workflow that is a chain of hosted nodes: what it begins with, and each node's type and configuration.
No node of it needs a network or a model."""

import hashlib
import hmac
import json
import time

SECRETS = {
    "slack_signing_secret": "a secret of slack",
    "wecom_aibot_token": "token", "wecom_aibot_encoding_aes_key": "b" * 43,
    "telegram_token": "123:abc", "discord_bot_token": "of discord", "qq_app_id": "id of qq",
    "qq_client_secret": "secret of qq",
}

TURNS = [
    {"role": "user", "content": "How does the caisson keep the water out?"},
    {"role": "assistant", "content": "The air inside has the pressure of the water around it."},
    {"role": "user", "content": "That is a great answer, thanks!"},
    {"role": "assistant", "content": "You are welcome. Is there more about the caisson?"},
]
RESULTS = [
    {"id": "r1", "score": 0.9, "text": "A caisson is a watertight chamber.", "metadata": {"title": "Caisson", "url": "https://a.example/1"},
     "source": "dense", "sources": ["dense"]},
    {"id": "r2", "score": 0.4, "text": "Bridges stand on piers.", "metadata": {"title": "Piers"}, "source": "sparse", "sources": ["sparse"]},
    {"id": "r3", "score": 0.1, "text": "A caisson is a watertight chamber. 😀 ß", "metadata": {}, "source": "dense", "sources": []},
]
CHUNKS = [
    {"id": f"c{index}", "document_id": "d", "index": index, "content": text, "metadata": {"document_id": "d", "chunk_index": index}}
    for index, text in enumerate(["The caisson was lowered.", "Men worked under water in the caisson.", "Bread and butter."])
]
CODEBOOK = {"themes": [
    {"theme_id": "T1", "title": "Price", "subthemes": [
        {"code_id": "C1", "title": "Too dear", "definition": "Says that it costs too much", "include": ["dear"], "exclude": ["cheap"]},
        {"code_id": "C2", "title": "Fair", "definition": "Says that it is worth it"}]},
    {"theme_id": "T2", "title": "Help", "subthemes": [{"code_id": "C3", "title": "Slow help", "definition": "Waited long"}]},
]}
UNITS = [
    {"unit_id": f"U{index}", "record_id": f"R{index}", "source": "survey", "text": text, "original_text": text,
     "metadata": {"segment": segment}}
    for index, (text, segment) in enumerate([
        ("It is far too dear for what it does, and it breaks.", "old"), ("Worth every penny that I paid for it.", "new"),
        ("I waited two weeks for an answer from your people.", "old"), ("ok", "new")], start=1)
]
ASSIGNMENTS = [
    {"unit_id": "U1", "assignments": [{"code_id": "C1", "evidence": "far too dear", "confidence": 0.9, "sentiment": "negative"}]},
    {"unit_id": "U2", "assignments": [{"code_id": "C2", "evidence": "Worth every penny", "confidence": 0.8, "sentiment": "positive"}]},
    {"unit_id": "U3", "assignments": [{"code_id": "C3", "evidence": "waited two weeks", "confidence": 0.7, "sentiment": "negative"}]},
]
INSIGHTS = [{
    "insight_id": "I1", "title": "Price keeps people away", "observation": "Many say that it is too dear.",
    "evidence": [{"unit_id": "U1", "quote": "far too dear"}], "theme_ids": ["T1"], "supporting_theme_ids": ["T1"],
    "supporting_unit_ids": ["U1"], "confidence": 0.8, "statement": "Price keeps people away", "so_what": "They leave.",
}]


def slack_request():
    """A request as Slack signs it, now: its receiver refuses old ones."""
    body = json.dumps({"type": "event_callback", "event": {"type": "app_mention", "text": "<@U1> hello", "channel": "C1",
                                                           "user": "U2", "ts": "1.0"}})
    stamp = str(int(time.time()))
    digest = hmac.new(SECRETS["slack_signing_secret"].encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"headers": {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}, "raw": body}


def inputs():
    slack = slack_request()
    return {
        "three": 3, "key": "message", "half": 0.5, "terms": ["secret", "hidden"], "evil": "{{inputs.three}} [[telegram_token]]",
        "message": "How does it compare with a diving bell and how old is it?", "headers": slack["headers"], "slack": {"raw": slack["raw"]},
        "history": ["We spoke about the Brooklyn Caisson.", {"role": "user", "content": "Tell me about the Brooklyn Caisson"}],
        "conversation_history": TURNS, "turns": TURNS, "session_id": "s1", "user_message": "hi", "assistant_message": "hello",
        "variants": [{"name": "a", "score": 0.4}, {"name": "b", "score": 0.8}], "evaluation_metrics": {"m": 0.7},
        "metrics": {"recall": 0.5}, "feedback": [{"session_id": "s", "rating": 2, "comment": "bad"}, {"rating": 5, "comment": "ok"}],
        "references": {"q1": "the air keeps the water out"}, "answers": [{"id": "q1", "answer": "air keeps water out"}],
        "texts": ["the cat sat", "a dog ran"], "golden": ["the cat sat down", "a dog ran"],
        "dataset": [{"id": "q1", "query": "What is it?", "relevant_ids": ["r1", "r9"]}],
        "retrieval_results": [{"query_id": "q1", "results": RESULTS}],
        "retrieval_metrics": {"recall_at_k": 0.2}, "answer_metrics": {"faithfulness": 0.9}, "content": "my password is a secret",
        "rating": 4, "comment": " good ", "prompt": "Say something long enough to be cut into some pieces.",
        "body": {"update_id": 1, "message": {"message_id": 7, "chat": {"id": 5, "type": "private"}, "from": {"id": 9, "first_name": "Ann"},
                                             "text": "Hello from Telegram"}},
        "listener": {"platform": "telegram", "event_type": "message", "bot_identity": "b", "message": {"text": "hi", "chat_id": "5"},
                     "reply_target": {"chat_id": "5"}},
        "documents": [{"filename": "a.csv", "content": "id,text\n1,It is too dear\n2,Worth it\n", "content_type": "text/csv"},
                      {"name": "empty.txt"}],
    }


SEED = {
    "grounded_generator": {"reply": "The air keeps it out [1].", "citations": [
        {"id": "1", "snippet": "A caisson is watertight.", "sources": ["dense"], "source_id": "r1", "metadata": {"url": "https://a.example/1"}}]},
    "conversation_state": {"conversation_history": TURNS},
    "retriever": {"results": RESULTS},
    "retrieval_results": {"dense": RESULTS[:2], "sparse": RESULTS[1:]},
    "chunking_strategy": {"chunks": CHUNKS},
    "chunk_embedding": {"chunk_embeddings": {"dense": [
        {"id": "c0", "values": [0.1, 0.2], "text": "The caisson was lowered.", "metadata": {"document_id": "d"}}]}},
    "document_loader": {"documents": [{"id": "d1", "content": "Title here\nand a text", "source": "x", "metadata": {"a": 1}}]},
    "loader": {"attachments": [{"filename": "a.csv", "content": "id,text\n1,It is too dear\n", "errors": []}]},
    "found": RESULTS,
    "empty": {"results": []},
    "template": {"yields": "{{inputs.message}}"},
}

# (type, configuration); the id of each is its type with a number.
CHAIN = [
    ("ABTestingNode", {"min_metric_threshold": "{{inputs.half}}"}),
    ("AnalyticsExportNode", {"dataset_name": "golden"}),
    ("AnswerCachingNode", {}),
    ("AnswerQualityEvaluationNode", {}),
    ("BleuMetricsNode", {"predictions_key": "texts", "references_key": "golden"}),
    ("CitationsFormatterNode", {}),
    ("CodebookOutputNode", {"codebook": CODEBOOK, "units": UNITS, "research_objective": "Why do they leave?"}),
    ("CodedDataIngestNode", {"units": UNITS, "code_assignments": ASSIGNMENTS, "approved_codebook": CODEBOOK, "allow_chained_results": True}),
    ("ContextCompressorNode", {"results_field": "found"}),
    ("ConversationCompressorNode", {"max_tokens": 12, "preserve_recent": "{{inputs.three}}"}),
    ("ConversationStateNode", {}),
    ("CoreferenceResolverNode", {"query_key": "{{inputs.key}}"}),
    ("DataAugmentationNode", {"multiplier": "{{inputs.three}}"}),
    ("DataQualityNode", {"units": UNITS}),
    ("DiscordBotListenerNode", {}),
    ("ExportCodebookNode", {"codebook": CODEBOOK, "export_format": "json"}),
    ("ExportCodedDataNode", {"codebook": CODEBOOK, "units": UNITS, "assignments": ASSIGNMENTS}),
    ("ExportReportNode", {"approved_codebook": CODEBOOK, "units": UNITS}),
    ("FailureAnalysisNode", {}),
    ("FeedbackIngestionNode", {}),
    ("HallucinationGuardNode", {}),
    ("HybridFusionNode", {"top_k": 2}),
    ("IngestNode", {"source_payload": {"source_type": "text", "content": "First record.\n\nSecond record.", "filename": "a.txt"}}),
    ("InsightCriticNode", {"units": UNITS, "approved_codebook": CODEBOOK, "code_assignments": ASSIGNMENTS, "candidate_insights": INSIGHTS}),
    ("LLMJudgeNode", {"min_score": "{{inputs.half}}"}),
    ("LLMStageFinalizeNode", {"stage": "open_coder", "units": UNITS}),
    ("LLMStagePrepareNode", {"stage": "open_coder", "units": UNITS, "research_objective": "{{inputs.message}}"}),
    ("LoadAttachmentsNode", {}),
    ("MemoryPrivacyNode", {"retention_count": 2}),
    ("MemorySummarizerNode", {}),
    ("MetadataExtractorNode", {"static_metadata": {"from": "{{inputs.key}}"}, "tags": ["a", "{{inputs.key}}"]}),
    ("MultiHopPlannerNode", {}),
    ("PolicyComplianceNode", {"blocked_terms": "{{inputs.terms}}"}),
    ("QQBotListenerNode", {}),
    ("QueryClarificationNode", {}),
    ("QueryClassifierNode", {}),
    ("ReRankerNode", {"length_penalty": 0.01}),
    ("RecodeOutputNode", {"units": UNITS, "assignments": ASSIGNMENTS}),
    ("RecommendationGeneratorNode", {"candidate_insights": INSIGHTS}),
    ("ReportOutputNode", {"units": UNITS, "approved_codebook": CODEBOOK, "code_assignments": ASSIGNMENTS, "candidate_insights": INSIGHTS}),
    ("RetrievalEvaluationNode", {"k": "{{inputs.three}}"}),
    ("RougeMetricsNode", {"predictions_key": "texts", "references_key": "golden"}),
    ("SearchResultAdapterNode", {}),
    ("SearchResultFormatterNode", {"header": "Found for {{inputs.message}}"}),
    ("SegmentRecordsNode", {"records": [{"_id": 1, "text": "<p>One</p>\n\nTwo", "source": "web", "lang": "en"}], "metadata_fields": ["lang"]}),
    ("SessionManagementNode", {"max_turns": 2}),
    ("SlackEventsParserNode", {"body_key": "slack"}),
    ("SourceRouterNode", {"min_score": 0.3}),
    ("SparseSearchNode", {"top_k": 2}),
    ("StreamingGeneratorNode", {"chunk_size": 4, "ai_model": None}),
    ("TelegramBotListenerNode", {}),
    ("TelegramEventsParserNode", {}),
    ("TopicShiftDetectorNode", {}),
    ("TurnAnnotationNode", {}),
    ("TwoTrackThemeReportNode", {"report_date": "2026-01-02", "codebook": CODEBOOK, "units": UNITS, "dry_run": True}),
    ("UserFeedbackCollectionNode", {}),
    ("ValidateFilesNode", {"data_field": "data"}),
    ("VectorStoreUpsertNode", {}),
    ("WeComAIBotEventsParserNode", {}),
    # A template that yields the text of a template, or of a credential, yields that text.
    ("SearchResultFormatterNode", {"header": "{{template.yields}}", "empty_message": "{{inputs.evil}}", "source_result_key": "empty"}),
    # A node is kept between visits of its place, and is another one at another place.
    ("FeedbackIngestionNode", {}),
]


def chain():
    """[(id, type, config)]"""
    return [(f"{kind}_{index}", kind, config) for index, (kind, config) in enumerate(CHAIN, start=1)]
