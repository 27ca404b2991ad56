// SPDX-License-Identifier: Apache-2.0
// For tests: the doubles of Firecracker and its jailer in a directory of their own, where they are
// told what shall go wrong (fake/control.h).
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace caisson::machine::firecracker {

class Doubles {
 public:
  Doubles() {
    namespace fs = std::filesystem;
    char name[] = "/tmp/caisson-doubles-XXXXXX";
    directory_ = ::mkdtemp(name);
    for (const char* program : {"firecracker", "jailer"}) {
      const std::string to = directory_ + "/" + program;
      fs::copy_file(std::string(CAISSON_TEST_DOUBLES) + "/" + program, to);
    }
    fs::create_directory(directory_ + "/control");
    ::chmod((directory_ + "/control").c_str(), 0777);
    // Written to by each machine's own user.
    std::ofstream(directory_ + "/control/requests") << "";
    ::chmod((directory_ + "/control/requests").c_str(), 0666);
  }
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;
  ~Doubles() {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

  const std::string& directory() const { return directory_; }
  std::string firecracker() const { return directory_ + "/firecracker"; }
  std::string jailer() const { return directory_ + "/jailer"; }
  void Wish(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/control/" + name) << text << "\n";
  }
  void Unwish(const std::string& name) const {
    std::filesystem::remove(directory_ + "/control/" + name);
  }
  // All wishes, and what was asked.
  void Forget() const {
    for (const auto& file : std::filesystem::directory_iterator(directory_ + "/control")) {
      if (file.path().filename() != "requests") std::filesystem::remove(file.path());
    }
    std::filesystem::resize_file(directory_ + "/control/requests", 0);
  }
  // Calls of the jailer and requests of the API, a line each, and what was refused.
  std::string Requests() const {
    std::ifstream file(directory_ + "/control/requests");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::size_t Count(const std::string& word) const {
    const std::string text = Requests();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) {
      ++count;
    }
    return count;
  }

 private:
  std::string directory_;
};

}  // namespace caisson::machine::firecracker
