// SPDX-License-Identifier: Apache-2.0
#include "isolate/channel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caisson::isolate {
namespace {

std::string Frame(std::uint8_t kind, bool final, const std::string& payload) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(payload.size() >> (8 * i) & 0xff);
  text += static_cast<char>(kind);
  text += final ? '\1' : '\0';
  return text + std::string(2, '\0') + payload;
}

TEST(ChannelReader, CutsFramesWhereverTheBytesAreSplit) {
  const std::string bytes = Frame(1, true, "[1]") + Frame(3, false, "") + Frame(16, false, "{}");
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    ChannelReader reader;
    std::vector<std::string> seen;
    ChannelFrame frame;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.Append(std::string_view(bytes).substr(at, step));
      while (reader.Next(100, frame) == ChannelReader::State::kFrame) {
        seen.push_back(std::to_string(frame.kind) + (frame.final ? "!" : "") +
                       std::string(frame.payload));
      }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"1![1]", "3", "16{}"})) << step;
  }
}

TEST(ChannelReader, RefusesALongFrameByItsHeaderAlone) {
  ChannelReader reader;
  reader.Append(Frame(1, true, std::string(101, 'x')).substr(0, kFrameHeaderBytes));
  ChannelFrame frame;
  EXPECT_EQ(reader.Next(100, frame), ChannelReader::State::kTooLong);
  EXPECT_EQ(reader.Next(101, frame), ChannelReader::State::kMore);
}

TEST(ChannelReader, RefusesWhatIsNoFrame) {
  const std::vector<std::string> texts = {
      "{\"type\":\"done\",\"result\":{\"forged\":true}}\n",
      Frame(0, false, ""),
      Frame(6, false, ""),  // stderr does not come this way
      Frame(7, false, ""),
      Frame(19, false, ""),
      std::string("\0\0\0\0\1\2\0\0", 8),
      std::string("\0\0\0\0\1\0\1\0", 8),
  };
  for (const std::string& text : texts) {
    ChannelReader reader;
    reader.Append(text);
    ChannelFrame frame;
    EXPECT_EQ(reader.Next(1u << 30, frame), ChannelReader::State::kBroken) << text;
  }
}

}  // namespace
}  // namespace caisson::isolate
