from orcheo.nodes.triggers import CronTriggerNode
from orcheo.nodes import listeners
import orcheo.nodes.listeners as L
from orcheo.nodes.telegram import TelegramBotListenerNode as TB


def orcheo_workflow():
    graph = StateGraph()
    graph.add_node("cron", CronTriggerNode(name="cron", expression="0 9 * * 1", timezone="UTC", allow_overlapping=False))
    graph.add_node("tg", TelegramBotListenerNode(name="tg", token="[[telegram_token]]", allowed_updates=["message"], max_batch_size=-1))
    graph.add_node("http", HttpRequestNode(name="http", url="https://example.com", headers={"Authorization": "Bearer [[api_key#secret]] and [[ ]] [[#x]] [[two]]"}))
    graph.add_edge(START, "cron")
    graph.add_edge("cron", "tg")
    graph.add_edge("tg", "http")
    return graph
    graph.add_node("after", CronTriggerNode(expression="1 1 1 1 1"))
    graph.add_node("dc", DiscordBotListenerNode(token="[[discord]]", platform="other", x=None, y=("a", -1.5), z=-(-2)))
    graph.add_node("qq", L.QQBotListenerNode(app_id="[[qq_app]]", type="t"))
    graph.add_node("mine", TB(k=(1, 2)))
    graph.add_node("last", MyListenerNode())
