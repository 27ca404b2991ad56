// SPDX-License-Identifier: Apache-2.0
// A template built in a real machine, and machines restored from it. Needs the image debian:12,
// which the test images.debian builds.
#include <gtest/gtest.h>

#include "agent/client.h"
#include "control/template_build.h"
#include "errors/control.h"
#include "machine/jail/test_jail.h"

namespace caisson::control {
namespace {

std::string Debian() {
  const auto store = images::Store::Open(machine::ImagesForTests());
  if (!store) return "";
  const auto image = store->Find("debian:12");
  return image ? image->id : "";
}

struct Ran {
  int code = -1;
  std::string output;
};
Ran RunIn(machine::Driver& driver, const std::string& id, const images::Dockerfile& file,
          const std::string& command) {
  agent::ExecRequest request;
  request.command = {.argv = {"/bin/sh", "-c", command},
                     .env = file.environment,
                     .cwd = file.directory,
                     .pty = {}};
  auto exec = agent::Exec::Start(driver.Connect(id).value(), request).value();
  Ran ran;
  for (;;) {
    const auto event = exec.Next(std::chrono::seconds(20)).value();
    if (event.kind == agent::ExecEvent::Kind::kExit) return ran.code = event.exit_code, ran;
    if (event.kind == agent::ExecEvent::Kind::kStdout) ran.output += event.data;
    if (event.kind == agent::ExecEvent::Kind::kFailedToStart) return ran;
  }
}

TEST(TemplateMachine, is_what_its_steps_have_made) {
  if (::geteuid() != 0) GTEST_SKIP() << "machines are made by root";
  const std::string image = Debian();
  if (image.empty()) GTEST_SKIP() << "there is no image debian:12; images.debian builds it";
  const machine::HelperProcess helper(machine::jail::JailHelper());
  const auto driver = helper.Open().value();
  TemplateBuild build;
  build.machine = {
      .id = "build-1", .host_name = {}, .image = image, .network = egress::Policy::DenyAll()};
  build.snapshot = "template-1";
  build.file = images::ParseDockerfile(
                   "FROM debian:12\nENV WHO=world\nWORKDIR /srv/app\n"
                   "RUN useradd -m worker && dpkg --print-architecture > greeting\n"
                   "RUN printf '#!/bin/bash\\necho $WHO\\n' > /usr/local/bin/who-is && chmod +x "
                   "/usr/local/bin/who-is\n",
                   {.images = {{"debian:12", "debian:12"}}})
                   .value();
  std::string log;
  const auto built =
      BuildTemplate(*driver, build, [&](const TemplateLog& line) { log += line.line + "\n"; }, {});
  ASSERT_TRUE(built) << built.error().message << "\n" << log;
  EXPECT_TRUE(driver->List()->empty());
  machine::MachineSpec spec = build.machine;
  for (const char* id : {"first", "second"}) {
    spec.id = id;
    ASSERT_TRUE(driver->Restore("template-1", spec)) << id;
    EXPECT_EQ(RunIn(*driver, id, build.file, "cat greeting; who-is; id -un worker").output,
              "amd64\nworld\nworker\n");
    EXPECT_EQ(RunIn(*driver, id, build.file, "echo mine > greeting").code, 0);
  }
  build.file.steps.resize(1);
  build.file.steps[0].arguments = {"/bin/sh", "-c", "exit 3"};
  build.machine.id = "build-2";
  build.snapshot = "template-2";
  const auto failed = BuildTemplate(*driver, build, [](const TemplateLog&) {}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, errors::kControlTemplateFailed);
  EXPECT_EQ(driver->ListSnapshots()->size(), 1u);
  for (const char* id : {"first", "second"}) EXPECT_TRUE(driver->Destroy(id));
  EXPECT_TRUE(driver->RemoveSnapshot("template-1"));
}

}  // namespace
}  // namespace caisson::control
