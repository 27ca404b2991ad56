// SPDX-License-Identifier: Apache-2.0
#include "json/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <new>
#include <string>

#include "errors/json_schema.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

constexpr std::size_t kMaxPatternBytes = 16384;
constexpr std::uint32_t kMaxParentheses = 200;
constexpr std::uint32_t kMatchLimit = 1'000'000;
constexpr std::uint32_t kDepthLimit = 20'000;
constexpr std::uint32_t kHeapKibibytes = 16'384;

struct PcreFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
template <typename T>
using Pcre = std::unique_ptr<T, PcreFree>;

template <typename T>
Pcre<T> Owned(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return Pcre<T>(made);
}

std::string ErrorText(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

std::string Shown(std::string_view text) {
  return text.size() <= 80 ? Quote(text) : Quote(text.substr(0, 80)) + "…";
}

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct Pattern::Code {
  Pcre<pcre2_code> code;
  Pcre<pcre2_match_context> limits;
};

Result<Pattern> Pattern::Compile(std::string_view text) {
  if (text.size() > kMaxPatternBytes) {
    return Fail(errors::kJsonSchemaTooLarge, "the pattern has " + std::to_string(text.size()) +
                                                 " bytes; at most " +
                                                 std::to_string(kMaxPatternBytes) + " are allowed");
  }
  const auto context = Owned(pcre2_compile_context_create(nullptr));
  pcre2_set_parens_nest_limit(context.get(), kMaxParentheses);
  pcre2_set_compile_extra_options(context.get(), PCRE2_EXTRA_ALT_BSUX);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* made = pcre2_compile(
      Units(text), text.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX,
      &error, &offset, context.get());
  if (made == nullptr) {
    return Fail(errors::kJsonSchemaInvalid, "the pattern " + Shown(text) +
                                                " is not well formed: " + ErrorText(error) +
                                                " at byte " + std::to_string(offset));
  }
  auto code = std::make_shared<Code>();
  code->code.reset(made);
  code->limits = Owned(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(code->limits.get(), kMatchLimit);
  pcre2_set_depth_limit(code->limits.get(), kDepthLimit);
  pcre2_set_heap_limit(code->limits.get(), kHeapKibibytes);
  return Pattern(std::move(code));
}

Result<bool> Pattern::Matches(std::string_view subject) const {
  const auto data = Owned(pcre2_match_data_create(1, nullptr));
  const int found = pcre2_match(code_->code.get(), Units(subject), subject.size(), 0, 0, data.get(),
                                code_->limits.get());
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  return Fail(errors::kJsonSchemaTooCostly,
              "a pattern could not be matched within its limits (" + ErrorText(found) +
                  "); simplify it, for instance where one repetition stands in another");
}

}  // namespace caisson::json
