// SPDX-License-Identifier: Apache-2.0
#include "images/dockerfile.h"

#include <gtest/gtest.h>

#include "errors/images.h"

namespace caisson::images {
namespace {

const DockerfileOptions kOptions = {
    .images = {{"devbox:1", "devbox:1"}, {"nodeops/sandbox:debian", "devbox:1"}}};

Result<Dockerfile> Parse(const std::string& text) { return ParseDockerfile(text, kOptions); }
Dockerfile Good(const std::string& text) {
  auto file = Parse(text);
  EXPECT_TRUE(file) << file.error().message;
  return file.value_or(Dockerfile{});
}
std::string Mistake(const std::string& text) {
  const auto file = Parse(text);
  if (file) return "accepted";
  EXPECT_EQ(file.error().code, errors::kImagesDockerfile);
  return file.error().message;
}

TEST(Dockerfile, is_a_base_and_steps) {
  const Dockerfile file = Good(
      "# what it is for\n\nFROM nodeops/sandbox:debian\r\n"
      "RUN apt-get update \\\n  # the index\n\n  && apt-get install -y jq\n"
      "workdir app\nENV A=1\nRUN echo $A\nRUN [\"bash\", \"-c\", \"echo hi\"]\n");
  EXPECT_EQ(file.from, "nodeops/sandbox:debian");
  EXPECT_EQ(file.image, "devbox:1");
  ASSERT_EQ(file.steps.size(), 4u);
  EXPECT_EQ(
      file.steps[0].arguments,
      (std::vector<std::string>{"/bin/sh", "-c", "apt-get update   && apt-get install -y jq"}));
  EXPECT_EQ(file.steps[0].line, 4u);
  EXPECT_EQ(file.steps[0].directory, "/");
  EXPECT_EQ(file.steps[1].arguments, (std::vector<std::string>{"/bin/mkdir", "-p", "--", "/app"}));
  EXPECT_EQ(file.steps[2].arguments[2], "echo $A");  // the shell's own
  EXPECT_EQ(file.steps[2].environment.at("A"), "1");
  EXPECT_EQ(file.steps[2].directory, "/app");
  EXPECT_EQ(file.steps[2].text, "RUN echo $A");
  EXPECT_EQ(file.steps[3].arguments, (std::vector<std::string>{"bash", "-c", "echo hi"}));
  EXPECT_EQ(file.directory, "/app");
  EXPECT_EQ(file.environment.at("A"), "1");
  EXPECT_FALSE(file.steps[0].environment.contains("A"));
}

TEST(Dockerfile, replaces_variables_as_docker_does) {
  const Dockerfile file = Good(
      "FROM devbox:1\nENV A=1 B=$A\nENV B=\"$A two\" C='$A' D=\\$A E=a\\ b F=${A}x G=${Z:-none} "
      "H=${A:+set}\n"
      "ENV PATH=/opt/bin:$PATH\nENV OLD  all $A  of it\nWORKDIR /srv/$A\nWORKDIR ../x/./y\n");
  const Environment& set = file.environment;
  EXPECT_EQ(set.at("B"), "1 two");
  EXPECT_EQ(set.at("C"), "$A");
  EXPECT_EQ(set.at("D"), "$A");
  EXPECT_EQ(set.at("E"), "a b");
  EXPECT_EQ(set.at("F"), "1x");
  EXPECT_EQ(set.at("G"), "none");
  EXPECT_EQ(set.at("H"), "set");
  EXPECT_TRUE(set.at("PATH").starts_with("/opt/bin:/usr/local/sbin:"));
  EXPECT_EQ(set.at("OLD"), "all 1  of it");
  EXPECT_EQ(file.directory, "/srv/x/y");
  EXPECT_EQ(Good("FROM devbox:1\nENV A=1 B=$A\n").environment.at("B"),
            "");  // one line sees nothing of itself
}

TEST(Dockerfile, arguments_hold_for_steps_only_and_give_way_to_env) {
  const Dockerfile file = Good("FROM devbox:1\nARG V=1\nENV W=$V\nENV V=2\nARG V=3\nRUN x\n");
  EXPECT_EQ(file.environment.at("W"), "1");
  EXPECT_EQ(file.environment.at("V"), "2");
  EXPECT_EQ(file.steps[0].environment.at("V"), "2");
  const Dockerfile other = Good("FROM devbox:1\nARG V=1\nRUN x\n");
  EXPECT_EQ(other.steps[0].environment.at("V"), "1");
  EXPECT_FALSE(other.environment.contains("V"));
}

TEST(Dockerfile, keeps_labels) {
  EXPECT_EQ(Good("FROM devbox:1\nLABEL org.example.name=\"a b\" x=y\n").labels,
            (std::map<std::string, std::string>{{"org.example.name", "a b"}, {"x", "y"}}));
}

TEST(Dockerfile, every_mistake_has_its_line_and_advice) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: there is no FROM; begin with one of: devbox:1, nodeops/sandbox:debian"},
      {"# only a comment\n", "line 1: there is no FROM"},
      {"RUN x\nFROM devbox:1\n", "line 1: RUN stands before FROM"},
      {"ARG X=1\nFROM devbox:1\n", "line 1: ARG stands before FROM"},
      {"ARG X=1\nFROM $X\n", "line 1: ARG stands before FROM"},
      {"FROM $X\n", "line 1: FROM has a variable"},
      {"FROM\n", "line 1: \"\" is not an image"},
      {"FROM ubuntu:24.04\n",
       "line 1: \"ubuntu:24.04\" is not an image that templates may be made of: devbox:1"},
      {"FROM devbox:1 AS x\n", "line 1: FROM names more than an image"},
      {"FROM --platform=linux/arm64 devbox:1\n", "line 1: options of FROM"},
      {"FROM devbox:1\nFROM devbox:1\n", "line 2: there is a second FROM"},
      {"FROM devbox:1\n\nCOPY a b\n", "line 3: COPY is not supported: make files in a RUN step"},
      {"FROM devbox:1\nadd a b\n", "line 2: ADD is not supported"},
      {"FROM devbox:1\nCMD [\"x\"]\n", "line 2: CMD is not supported"},
      {"FROM devbox:1\nENTRYPOINT x\n", "line 2: ENTRYPOINT is not supported"},
      {"FROM devbox:1\nUSER nobody\n", "line 2: USER is not supported: commands run as root"},
      {"FROM devbox:1\nEXPOSE 80\n", "line 2: EXPOSE is not supported"},
      {"FROM devbox:1\nSHELL [\"bash\"]\n", "line 2: SHELL is not supported"},
      {"FROM devbox:1\nONBUILD RUN x\n", "line 2: ONBUILD is not supported"},
      {"FROM devbox:1\nHEALTHCHECK NONE\n", "line 2: HEALTHCHECK is not supported"},
      {"FROM devbox:1\nVOLUME /x\n", "line 2: VOLUME is not supported"},
      {"FROM devbox:1\nRUNN x\n", "line 2: \"RUNN\" is no instruction"},
      {"FROM devbox:1\nRUN\n", "line 2: RUN has nothing behind it"},
      {"FROM devbox:1\nRUN \\\n", "line 2: RUN has nothing behind it"},
      {"FROM devbox:1\nRUN --mount=type=secret,id=x cat\n", "line 2: options of RUN"},
      {"FROM devbox:1\nRUN cat <<EOF\nx\nEOF\n", "line 2: RUN has a here-document"},
      {"FROM devbox:1\nRUN cat <<-'EOF' > x\n", "line 2: RUN has a here-document"},
      {"FROM devbox:1\nRUN [\"x\", 1]\n", "line 2: RUN [ … ] takes texts only"},
      {"FROM devbox:1\nRUN []\n", "line 2: RUN [ ] names no program"},
      {"FROM devbox:1\nENV A\n", "line 2: ENV has a name without a value"},
      {"FROM devbox:1\nENV 1A=x\n", "line 2: \"1A\" is not a name for ENV"},
      {"FROM devbox:1\nENV A=1 B\n", "line 2: \"B\" has no value"},
      {"FROM devbox:1\nENV A=\"x\n", "line 2: a quote (\") is not closed"},
      {"FROM devbox:1\nENV A=${B\n", "line 2: ${B… is neither"},
      {"FROM devbox:1\nENV A=${B%x}\n", "line 2: ${B… is neither"},
      {"FROM devbox:1\nENV A=$1\n", "line 2: $ is not followed by the name of a variable"},
      {"FROM devbox:1\nARG A\n", "line 2: ARG A has no value, and none is given to a build"},
      {"FROM devbox:1\nARG A=1 B=2\n", "line 2: ARG takes one name"},
      {"FROM devbox:1\nWORKDIR \"\"\n", "line 2: WORKDIR names no directory"},
      {"# escape=`\nFROM devbox:1\n", "line 1: directives are not supported"},
      {"# syntax = docker/dockerfile:1\nFROM devbox:1\n", "line 1: directives are not supported"},
      {"FROM devbox:1\nRUN \xff\n", "line 2: the line holds bytes that are no UTF-8"},
      {std::string("FROM devbox:1\nRUN a\0b\n", 20), "line 2: the line holds bytes"},
  };
  for (const auto& [text, says] : cases) {
    const std::string message = Mistake(text);
    EXPECT_TRUE(message.starts_with(says)) << text << "\n" << message;
  }
}

TEST(Dockerfile, tells_all_mistakes) {
  const auto file = Parse("FROM devbox:1\nCOPY a b\nRUN ok\nUSER x\nCMD y\n");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().span.line, 2u);
  EXPECT_NE(file.error().details.find("line 4: USER"), std::string::npos);
  EXPECT_NE(file.error().details.find("line 5: CMD"), std::string::npos);
}

TEST(Dockerfile, here_strings_shifts_and_tests_are_no_here_documents) {
  for (const char* run :
       {"RUN cat <<< word", "RUN echo $((1<<2))", "RUN [ -e /x ] && echo y", "RUN a < b"}) {
    EXPECT_EQ(Good(std::string("FROM devbox:1\n") + run + "\n").steps.at(0).arguments.at(0),
              "/bin/sh")
        << run;
  }
}

TEST(Dockerfile, comments_that_look_like_directives_further_down_are_comments) {
  EXPECT_EQ(Good("FROM devbox:1\n# escape=x\nRUN a\n").steps.size(), 1u);
}

TEST(Dockerfile, is_bounded) {
  EXPECT_NE(Mistake("FROM devbox:1\nRUN " + std::string(kMaxDockerfileBytes, 'x'))
                .find("it may have 65536"),
            std::string::npos);
  std::string steps = "FROM devbox:1\n";
  for (std::size_t i = 0; i < kMaxTemplateSteps; ++i) steps += "RUN x\n";
  EXPECT_EQ(Good(steps).steps.size(), kMaxTemplateSteps);
  EXPECT_NE(Mistake(steps + "RUN x\n").find("more than 256 steps"), std::string::npos);
  std::string doubling = "FROM devbox:1\nENV A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 60; ++i) doubling += "ENV A=$A$A\n";
  EXPECT_NE(Mistake(doubling).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace caisson::images
