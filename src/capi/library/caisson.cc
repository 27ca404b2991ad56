// SPDX-License-Identifier: Apache-2.0
// The functions of include/caisson.h. No exception leaves them.
#include "caisson.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "capi/answer.h"
#include "capi/body_call.h"
#include "capi/compile.h"
#include "capi/engine.h"
#include "capi/options.h"
#include "errors/internal.h"
#include "errors/library.h"

struct caisson_engine {
  std::unique_ptr<caisson::capi::Engine> engine;
};

struct caisson_cancel {
  std::stop_source source;
};

namespace caisson::capi {
namespace {

// A null pointer is an empty text.
std::string_view Text(const char* text, std::size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}
std::string_view Text(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

std::stop_token TokenOf(const caisson_cancel* cancel) {
  return cancel == nullptr ? std::stop_token() : cancel->source.get_token();
}

LineSink SinkOf(caisson_on_event on_event, void* user) {
  if (on_event == nullptr) return nullptr;
  return [on_event, user](std::string_view line) {
    return on_event(user, line.data(), line.size()) == 0;
  };
}

json::Object Broken(const char* what) {
  return Failure({.code = errors::kInternalFailed, .message = what});
}

// What `make` answers, as text. Third-party code may throw (std::bad_alloc above all).
template <typename Make>
char* Answered(const Make& make) noexcept {
  try {
    try {
      return Give(make());
    } catch (const std::exception& error) {
      return Give(Broken(error.what()));
    }
  } catch (...) {
    return nullptr;
  }
}

template <typename Use>
char* WithEngine(caisson_engine* engine, const Use& use) noexcept {
  return Answered([&]() -> json::Object {
    if (engine != nullptr) return use(*engine->engine);
    return Failure({.code = errors::kLibraryOptions, .message = "the engine is NULL"});
  });
}

}  // namespace
}  // namespace caisson::capi

using namespace caisson::capi;
using caisson::json::Object;

const char* caisson_version(void) { return CAISSON_VERSION; }

int caisson_api_version(void) { return CAISSON_API_VERSION; }

void caisson_free(char* text) { std::free(text); }

char* caisson_compile(const char* source, std::size_t source_size, const char* options) {
  return Answered([&] { return Compile(Text(source, source_size), Text(options)); });
}

char* caisson_check_ir(const char* ir, std::size_t ir_size, const char* options) {
  return Answered([&] { return CheckIr(Text(ir, ir_size), Text(options)); });
}

char* caisson_engine_create(const char* options, caisson_engine** engine) {
  return Answered([&]() -> Object {
    if (engine == nullptr) {
      return Failure({.code = caisson::errors::kLibraryOptions,
                      .message = "there is no place for the engine: the pointer is NULL"});
    }
    *engine = nullptr;
    auto read = ReadEngineOptions(Text(options));
    if (!read) return Failure(read.error());
    auto made = Engine::Create(*std::move(read));
    if (!made) return Failure(made.error());
    Object answer = Success();
    *engine = new caisson_engine{*std::move(made)};
    return answer;
  });
}

char* caisson_engine_describe(caisson_engine* engine) {
  return WithEngine(engine, [](Engine& self) -> Object {
    auto workers = self.Workers();
    if (!workers) return Failure(workers.error());
    Object answer = Success();
    answer.Set("runtime", (*workers)->Describe());
    return answer;
  });
}

void caisson_engine_destroy(caisson_engine* engine) { delete engine; }

caisson_cancel* caisson_cancel_create(void) {
  try {
    return new caisson_cancel;
  } catch (...) {
    return nullptr;
  }
}

void caisson_cancel_request(caisson_cancel* cancel) {
  if (cancel != nullptr) cancel->source.request_stop();
}

void caisson_cancel_destroy(caisson_cancel* cancel) { delete cancel; }

char* caisson_run(caisson_engine* engine, const char* ir, std::size_t ir_size, const char* inputs,
                  std::size_t inputs_size, const char* options, caisson_cancel* cancel,
                  caisson_on_event on_event, void* user) {
  return WithEngine(engine, [&](Engine& self) -> Object {
    const auto read = ReadRunOptions(Text(options), self.limits());
    if (!read) return Failure(read.error());
    return self.Run(Text(ir, ir_size), Text(inputs, inputs_size), *read, TokenOf(cancel),
                    SinkOf(on_event, user));
  });
}

char* caisson_resume(caisson_engine* engine, const char* run_id, const char* answers,
                     std::size_t answers_size, const char* options, caisson_cancel* cancel,
                     caisson_on_event on_event, void* user) {
  return WithEngine(engine, [&](Engine& self) -> Object {
    const auto read = ReadResumeOptions(Text(options));
    if (!read) return Failure(read.error());
    return self.Resume(std::string(Text(run_id)), Text(answers, answers_size), *read,
                       TokenOf(cancel), SinkOf(on_event, user));
  });
}

char* caisson_call(caisson_engine* engine, const char* body, std::size_t body_size,
                   const char* inputs, std::size_t inputs_size, const char* options,
                   caisson_cancel* cancel) {
  return WithEngine(engine, [&](Engine& self) -> Object {
    const auto read = ReadCallOptions(Text(options), self.limits());
    if (!read) return Failure(read.error());
    return CallBody(self, Text(body, body_size), Text(inputs, inputs_size), *read, TokenOf(cancel));
  });
}
