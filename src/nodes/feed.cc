// SPDX-License-Identifier: Apache-2.0
#include "nodes/feed.h"

#include <expat.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "nodes/date_time.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

// What we still need of an open element.
struct Element {
  std::string name;  // without its namespace, in lower case
  std::string href;
  std::string rel;
  std::string text;                   // of itself and everything within
  std::optional<std::size_t> item;    // it is one: its index
  std::string link_without_relation;  // of an item: the first one
  bool has_link = false;              // of an item: one that stands above the others
};

class Reader {
 public:
  explicit Reader(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(
        parser,
        [](void* self, const XML_Char* name, const XML_Char** attributes) {
          static_cast<Reader*>(self)->Begin(name, attributes);
        },
        [](void* self, const XML_Char*) { static_cast<Reader*>(self)->End(); });
    XML_SetCharacterDataHandler(parser, [](void* self, const XML_Char* text, int size) {
      static_cast<Reader*>(self)->Text({text, static_cast<std::size_t>(size)});
    });
    XML_SetEntityDeclHandler(parser, [](void* self, const XML_Char*, int, const XML_Char*, int,
                                        const XML_Char*, const XML_Char*, const XML_Char*,
                                        const XML_Char*) { static_cast<Reader*>(self)->Stop(); });
  }

  std::vector<FeedItem> Take() { return std::move(items_); }

 private:
  void Stop() { XML_StopParser(parser_, XML_FALSE); }

  void Begin(std::string_view name, const XML_Char** attributes) {
    if (open_.size() >= kMostFeedDepth || ++elements_ > kMostFeedElements) return Stop();
    Element element;
    // The parser writes a namespace before the name, and '}' between them.
    element.name = Lower(name.substr(name.rfind('}') + 1));
    for (; *attributes != nullptr; attributes += 2) {
      if (std::string_view(attributes[0]) == "href") element.href = Strip(attributes[1]);
      if (std::string_view(attributes[0]) == "rel") element.rel = Lower(Strip(attributes[1]));
    }
    if (element.name == "item" || element.name == "entry") {
      element.item = items_.size();
      items_.emplace_back();
    }
    open_.push_back(std::move(element));
  }

  // What a child of an item holds at any depth is its text.
  void Text(std::string_view text) {
    for (std::size_t i = 1; i < open_.size(); ++i) {
      if (!open_[i - 1].item || open_[i].item) continue;
      text_bytes_ += text.size();
      if (text_bytes_ > kMostFeedText) return Stop();
      open_[i].text += text;
    }
  }

  void End() {
    Element element = std::move(open_.back());
    open_.pop_back();
    if (element.item && !element.has_link) {
      items_[*element.item].link = std::move(element.link_without_relation);
    }
    if (open_.empty() || !open_.back().item) return;
    Element& parent = open_.back();
    FeedItem& item = items_[*parent.item];
    const std::string_view text = Strip(element.text);
    const auto keep = [&](std::string& field) {
      if (field.empty()) field = text;
    };
    if (element.name == "title") keep(item.title);
    if (element.name == "description" || element.name == "summary") keep(item.description);
    if (element.name == "pubdate" || element.name == "published" || element.name == "updated") {
      keep(item.published);
    }
    if (element.name == "link" && !parent.has_link) Link(element, parent, item, text);
  }

  // The text of a link, or the address of one that is an alternate, whichever comes first; else the
  // first address.
  static void Link(Element& element, Element& parent, FeedItem& item, std::string_view text) {
    if (element.href.empty() ? !text.empty() : element.rel == "alternate") {
      parent.has_link = true;
      item.link = element.href.empty() ? std::string(text) : std::move(element.href);
    } else if (parent.link_without_relation.empty()) {
      parent.link_without_relation = std::move(element.href);
    }
  }

  XML_Parser parser_;
  std::vector<Element> open_;
  std::vector<FeedItem> items_;
  std::size_t elements_ = 0;
  std::size_t text_bytes_ = 0;  // that of nested items counts more than once
};

}  // namespace

Result<std::vector<FeedItem>> ReadFeed(std::string_view xml) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreateNS("UTF-8", '}'), &XML_ParserFree);
  if (!parser) return NodeFailed("the XML parser cannot be set up");
  Reader reader(parser.get());
  constexpr std::size_t kPiece = 1u << 20;
  do {
    const std::string_view piece = xml.substr(0, kPiece);
    xml.remove_prefix(piece.size());
    if (XML_Parse(parser.get(), piece.data(), static_cast<int>(piece.size()), xml.empty()) !=
        XML_STATUS_OK) {
      return NodeFailed("Malformed XML feed response");
    }
  } while (!xml.empty());
  return reader.Take();
}

std::string NormalFeedDate(std::string_view text) {
  if (text.empty()) return "";
  if (const auto time = ParseMailTime(text)) {
    if (auto utc = FormatUtc(*time)) return *std::move(utc);
  }
  if (const auto time = ParseIsoTime(text)) {
    if (auto utc = FormatUtc(*time)) return *std::move(utc);
  }
  return "";
}

}  // namespace caisson::nodes
