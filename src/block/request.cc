// SPDX-License-Identifier: Apache-2.0
#include "block/request.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "errors/block.h"
#include "json/path.h"
#include "json/scanner.h"

namespace caisson::block {
namespace {

using Kind = json::Value::Kind;

constexpr std::size_t kMaxMembers = 64;
constexpr std::size_t kMaxOptionBytes = 64u << 10;
constexpr json::ReadOptions kLineOptions = {.max_bytes = std::size_t{1} << 40,
                                            .max_depth = kMaxRequestDepth};

constexpr std::array<std::string_view, 12> kRunMembers = {
    "op",      "id",     "script",  "user",   "documents", "artifacts",
    "sources", "tables", "options", "limits", "runtime",   "debug"};
constexpr std::string_view kCredit = "credit";

struct Member : json::ScannedChild {
  std::string name;
};

std::string PathOf(std::string_view key) {
  json::PathBuilder path;
  path.PrependKey(key);
  return path.Finish();
}

// One line. Every Read... gives false once the line is refused; error() then says why.
class Decoder {
 public:
  bool Scan(std::string_view line) {
    bool too_many = false;
    auto report = json::Scan(line, kLineOptions, [&](const json::ScannedChild& child) {
      too_many = too_many || !Add(child);
      return true;
    });
    if (!report) {
      Status status = std::move(report).error();
      return Refuse("", "the line is no JSON: " + status.message, errors::kBlockLineSyntax);
    }
    FindIdAndOp();
    if (report->kind != Kind::kObject) return Refuse("", "a request must be an object");
    if (too_many) return Refuse("", "a request has too many members");
    return CheckDuplicates();
  }

  bool ReadAny(Request& request) {
    if (!ReadId()) return false;
    const Member* op = Find("op");
    if (op == nullptr) return Refuse("", "a request needs op: run, cancel or credit");
    if (error_.op == "run") return ReadRun(request.emplace<RunRequest>());
    if (error_.op == "cancel") return ReadCancel(request.emplace<CancelRequest>());
    if (error_.op == "credit") return ReadCredit(request.emplace<CreditRequest>());
    return Refuse(PathOf("op"), "there is no such op; it is run, cancel or credit");
  }

  void set_policy(const LimitPolicy* policy) { policy_ = policy; }
  RequestError&& TakeError() { return std::move(error_); }

 private:
  bool Add(const json::ScannedChild& child) {
    if (child.key.empty() || members_.size() == kMaxMembers) return child.key.empty();
    auto key = json::Read(child.key);
    if (!key) return false;
    members_.push_back({child, key->as_string()});
    return true;
  }

  // So that every later error can name them.
  void FindIdAndOp() {
    std::string text;
    if (const Member* id = Find("id"); id != nullptr && ReadText(*id, text) && IsId(text)) {
      error_.id = text;
    }
    if (const Member* op = Find("op");
        op != nullptr && ReadText(*op, text) && text.size() <= kMaxIdBytes) {
      error_.op = text;
    }
  }

  static bool IsId(const std::string& text) { return !text.empty() && text.size() <= kMaxIdBytes; }

  bool CheckDuplicates() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (members_[i].name == members_[k].name) {
          return Refuse(PathOf(members_[i].name), "the member is there twice");
        }
      }
    }
    return true;
  }

  bool ReadId() {
    if (!error_.id.empty()) return true;
    return Refuse(
        Find("id") == nullptr ? "" : PathOf("id"),
        "a request needs an id, a string of 1 to " + std::to_string(kMaxIdBytes) + " bytes");
  }

  bool ReadRun(RunRequest& run) {
    run.id = error_.id;
    if (!CheckMembers({kRunMembers.data(), kRunMembers.size()}, true)) return false;
    return ReadScript(run) && ReadInputs(run) && ReadOptions(run) && ReadLimitsOf(run) &&
           ReadRuntime(run) && ReadDebug(run) && ReadRunCredit(run);
  }

  bool ReadCancel(CancelRequest& cancel) {
    cancel.id = error_.id;
    return CheckMembers({kRunMembers.data(), 2}, false);
  }

  bool ReadCredit(CreditRequest& credit) {
    credit.id = error_.id;
    constexpr std::array<std::string_view, 3> kMembers = {"op", "id", "bytes"};
    if (!CheckMembers({kMembers.data(), kMembers.size()}, false)) return false;
    const Member* bytes = Find("bytes");
    if (bytes == nullptr) return Refuse("", "credit needs bytes, a whole number from 1");
    return ReadCount(*bytes, 1, credit.bytes);
  }

  bool CheckMembers(std::span<const std::string_view> known, bool with_credit) {
    for (const Member& member : members_) {
      if (std::ranges::find(known, member.name) != known.end()) continue;
      if (with_credit && member.name == kCredit) continue;
      return Refuse(PathOf(member.name), "the op " + error_.op + " has no such member");
    }
    return true;
  }

  bool ReadScript(RunRequest& run) {
    const Member* script = Find("script");
    if (script == nullptr) return Refuse("", "run needs script, the source text");
    return ReadText(*script, run.job.source) || Refuse(PathOf("script"), "script must be a string");
  }

  bool ReadInputs(RunRequest& run) {
    const auto text = [this](std::string_view name) {
      const Member* member = Find(name);
      return member == nullptr ? std::nullopt : std::optional<InputText>(*member);
    };
    auto inputs = MakeInputs({.user = text("user"),
                              .documents = text("documents"),
                              .artifacts = text("artifacts"),
                              .sources = text("sources"),
                              .tables = text("tables")});
    if (!inputs) {
      error_.status = std::move(inputs.error().status);
      error_.path = std::move(inputs.error().path);
      return false;
    }
    run.job.inputs = *std::move(inputs);
    return true;
  }

  bool ReadOptions(RunRequest& run) {
    json::Value options = json::Object{};
    if (!ReadSmall("options", options)) return false;
    auto checked = MakeOptions(options);
    if (!checked) {
      error_.status = std::move(checked.error().status);
      error_.path = std::move(checked.error().path);
      return false;
    }
    run.job.options = *std::move(checked);
    return true;
  }

  bool ReadLimitsOf(RunRequest& run) {
    json::Value wish = json::Object{};
    if (!ReadSmall("limits", wish)) return false;
    auto limits = ReadLimits(wish, *policy_);
    if (limits) {
      run.job.limits = *limits;
      return true;
    }
    json::PathBuilder path;
    if (!limits.error().path.empty()) path.PrependKey(limits.error().path);
    path.PrependKey("limits");
    error_.status = std::move(limits.error().status);
    error_.path = path.Finish();
    return false;
  }

  bool ReadRuntime(RunRequest& run) {
    const Member* runtime = Find("runtime");
    if (runtime == nullptr) return true;
    return (ReadText(*runtime, run.runtime) && IsId(run.runtime)) ||
           Refuse(PathOf("runtime"), "runtime must be a string: cpython, native, oci or auto");
  }

  bool ReadDebug(RunRequest& run) {
    const Member* debug = Find("debug");
    if (debug == nullptr) return true;
    if (debug->kind != Kind::kBool) return Refuse(PathOf("debug"), "debug must be true or false");
    run.debug = debug->text == "true";
    return true;
  }

  bool ReadRunCredit(RunRequest& run) {
    const Member* credit = Find(kCredit);
    return credit == nullptr || ReadCount(*credit, 0, run.credit.emplace());
  }

  // Members that are looked at as values have a size of their own.
  bool ReadSmall(std::string_view key, json::Value& value) {
    const Member* member = Find(key);
    if (member == nullptr) return true;
    if (member->text.size() > kMaxOptionBytes) {
      return Refuse(PathOf(key), std::string(key) + " has more than " +
                                     std::to_string(kMaxOptionBytes) + " bytes");
    }
    auto read = json::Read(member->text);
    if (!read) return Refuse(PathOf(key), read.error().message);
    value = *std::move(read);
    return true;
  }

  static bool ReadText(const Member& member, std::string& text) {
    if (member.kind != Kind::kString) return false;
    auto value = json::Read(member.text, {.max_bytes = std::size_t{1} << 40});
    if (value) text = value->as_string();
    return value.has_value();
  }

  bool ReadCount(const Member& member, std::int64_t least, std::uint64_t& count) {
    if (member.kind == Kind::kDouble) {  // any number
      auto value = json::Read(member.text);
      if (value && value->is_int() && value->as_int() >= least) {
        count = static_cast<std::uint64_t>(value->as_int());
        return true;
      }
    }
    return Refuse(PathOf(member.name), member.name + " must be a whole number from " +
                                           std::to_string(least) + ", below 2^63");
  }

  const Member* Find(std::string_view key) const {
    const auto found = std::ranges::find(members_, key, &Member::name);
    return found == members_.end() ? nullptr : &*found;
  }

  bool Refuse(std::string path, std::string message, ErrorCode code = errors::kBlockRequest) {
    error_.status = {.code = code, .message = std::move(message)};
    error_.path = std::move(path);
    return false;
  }

  const LimitPolicy* policy_ = nullptr;
  std::vector<Member> members_;
  RequestError error_;
};

}  // namespace

std::expected<Request, RequestError> ReadRequest(std::string_view line, const LimitPolicy& policy) {
  Decoder decoder;
  decoder.set_policy(&policy);
  Request request;
  if (decoder.Scan(line) && decoder.ReadAny(request)) return request;
  return std::unexpected(decoder.TakeError());
}

}  // namespace caisson::block
