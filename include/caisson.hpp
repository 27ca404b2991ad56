// SPDX-License-Identifier: Apache-2.0
// caisson.h for C++17: handles that give themselves back, texts as strings. Header-only; link
// libcaisson.so. What the functions do, their options and answers, and the rules for threads and
// processes are those of caisson.h. Failures are answers, never exceptions; only std::bad_alloc is
// thrown, when there is no memory for an answer or a handle.
#ifndef CAISSON_HPP
#define CAISSON_HPP

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "caisson.h"

namespace caisson {

// The JSON text of an answer; owns it.
class Answer {
 public:
  // Takes over what a function of caisson.h returned.
  explicit Answer(char* text) : text_(text) {
    if (text_ == nullptr) throw std::bad_alloc();
  }
  bool ok() const { return json().substr(0, 10) == "{\"ok\":true"; }
  // Good as long as this is.
  std::string_view json() const { return text_ ? text_.get() : ""; }

 private:
  struct Free {
    void operator()(char* text) const { caisson_free(text); }
  };
  std::unique_ptr<char, Free> text_;
};

inline std::string_view Version() { return caisson_version(); }

inline Answer Compile(std::string_view source, const std::string& options = "{}") {
  return Answer(caisson_compile(source.data(), source.size(), options.c_str()));
}
inline Answer CheckIr(std::string_view ir, const std::string& options = "{}") {
  return Answer(caisson_check_ir(ir.data(), ir.size(), options.c_str()));
}

// Must outlive the runs and calls that it is given to.
class Cancel {
 public:
  Cancel() : cancel_(caisson_cancel_create()) {
    if (cancel_ == nullptr) throw std::bad_alloc();
  }
  void Request() { caisson_cancel_request(cancel_.get()); }
  caisson_cancel* get() const { return cancel_.get(); }

 private:
  struct Destroy {
    void operator()(caisson_cancel* cancel) const { caisson_cancel_destroy(cancel); }
  };
  std::unique_ptr<caisson_cancel, Destroy> cancel_;
};

// Is told of one event; false cancels the run. What it throws cancels the run too, and comes out of
// Engine::Run or Engine::Resume.
using OnEvent = std::function<bool(std::string_view line)>;

// Movable; empty after a move and when it could not be made.
class Engine {
 public:
  // Its answer is `made()`: an engine that could not be made answers everything with a failure.
  explicit Engine(const std::string& options = "{}") : made_(Create(options, engine_)) {}

  const Answer& made() const { return made_; }
  explicit operator bool() const { return engine_ != nullptr; }
  caisson_engine* get() const { return engine_.get(); }

  Answer Describe() { return Answer(caisson_engine_describe(get())); }

  Answer Run(std::string_view ir, std::string_view inputs, const std::string& options = "{}",
             const Cancel* cancel = nullptr, const OnEvent& on_event = nullptr) {
    Listener listener{&on_event, nullptr};
    Answer answer(caisson_run(get(), ir.data(), ir.size(), inputs.data(), inputs.size(),
                              options.c_str(), Handle(cancel), Function(on_event), &listener));
    return listener.Finish(std::move(answer));
  }

  Answer Resume(const std::string& run_id, std::string_view answers,
                const std::string& options = "{}", const Cancel* cancel = nullptr,
                const OnEvent& on_event = nullptr) {
    Listener listener{&on_event, nullptr};
    Answer answer(caisson_resume(get(), run_id.c_str(), answers.data(), answers.size(),
                                 options.c_str(), Handle(cancel), Function(on_event), &listener));
    return listener.Finish(std::move(answer));
  }

  Answer Call(std::string_view body, std::string_view inputs, const std::string& options = "{}",
              const Cancel* cancel = nullptr) {
    return Answer(caisson_call(get(), body.data(), body.size(), inputs.data(), inputs.size(),
                               options.c_str(), Handle(cancel)));
  }

 private:
  struct Destroy {
    void operator()(caisson_engine* engine) const { caisson_engine_destroy(engine); }
  };
  using Owned = std::unique_ptr<caisson_engine, Destroy>;

  // No exception may cross the C functions.
  struct Listener {
    const OnEvent* on_event;
    std::exception_ptr thrown;
    static int Hear(void* self, const char* line, std::size_t size) {
      auto* listener = static_cast<Listener*>(self);
      try {
        return (*listener->on_event)(std::string_view(line, size)) ? 0 : 1;
      } catch (...) {
        listener->thrown = std::current_exception();
        return 1;
      }
    }
    Answer Finish(Answer answer) const {
      if (thrown != nullptr) std::rethrow_exception(thrown);
      return answer;
    }
  };

  static Answer Create(const std::string& options, Owned& engine) {
    caisson_engine* made = nullptr;
    Answer answer(caisson_engine_create(options.c_str(), &made));
    engine.reset(made);
    return answer;
  }
  static caisson_cancel* Handle(const Cancel* cancel) {
    return cancel == nullptr ? nullptr : cancel->get();
  }
  static caisson_on_event Function(const OnEvent& on_event) {
    return on_event ? &Listener::Hear : nullptr;
  }

  Owned engine_;  // before made_, which fills it
  Answer made_;
};

}  // namespace caisson

#endif  // CAISSON_HPP
