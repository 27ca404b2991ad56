// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace caisson::egress::gate {
namespace {

constexpr std::chrono::microseconds kPiece{200};
// No more pieces fit into one turn; one is under way when it ends.
constexpr int kMostPieces = Loop::kTurn / kPiece + 1;

void Work() {
  const auto end = Clock::now() + kPiece;
  while (Clock::now() < end) continue;
}

class LoopTest : public ::testing::Test {
 protected:
  // Work without end.
  void Busy(Lane lane) {
    Work();
    ++pieces_;
    loop_.Soon(lane, [this, lane] { Busy(lane); });
  }
  void Write() {
    EXPECT_EQ(::write(pipe_.second.get(), "x", 1), 1);
    pieces_ = 0;
  }
  void EndWhenRead(Rank rank) {
    ASSERT_TRUE(loop_.Watch(pipe_.first.get(), {.rank = rank}, [this](std::uint32_t) {
      char byte = 0;
      if (::read(pipe_.first.get(), &byte, 1) == 1) loop_.Stop();
    }));
  }

  Loop loop_ = Loop::Make().value();
  os::FdPair pipe_ = os::MakePipe().value();
  int pieces_ = 0;
};

TEST_F(LoopTest, the_helper_waits_for_one_turn_however_much_there_is_to_do) {
  EndWhenRead(Rank::kControl);
  for (std::uint32_t party = 1; party <= 100; ++party) {
    for (const Rank rank : {Rank::kShort, Rank::kBulk}) {
      loop_.Soon({rank, party}, [this, rank, party] { Busy({rank, party}); });
    }
  }
  loop_.Soon({Rank::kShort, 1}, [this] { Write(); });
  ASSERT_TRUE(loop_.Run());
  EXPECT_LE(pieces_, 2 * kMostPieces) << "the rest of the turn in which it came";
}

TEST_F(LoopTest, questions_do_not_wait_for_bytes) {
  EndWhenRead(Rank::kShort);
  for (std::uint32_t party = 1; party <= 100; ++party) Busy({Rank::kBulk, party});
  loop_.Soon({Rank::kBulk, 1}, [this] { Write(); });
  ASSERT_TRUE(loop_.Run());
  EXPECT_LE(pieces_, kMostPieces);
}

TEST_F(LoopTest, parties_take_turns_and_each_has_its_order) {
  std::string order;
  const auto add = [&](std::uint32_t party, char what) {
    loop_.Soon({Rank::kBulk, party}, [&order, what] { order += what; });
  };
  for (const char what : {'a', 'b', 'c', 'd'}) add(1, what);
  for (const char what : {'X', 'Y'}) add(2, what);
  add(3, '!');
  loop_.After(std::chrono::milliseconds(50), [this] { loop_.Stop(); });
  ASSERT_TRUE(loop_.Run());
  EXPECT_EQ(order, "aX!bYcd");
}

TEST_F(LoopTest, what_is_forgotten_is_not_called_for_what_had_come) {
  os::FdPair other = os::MakePipe().value();
  int called = 0;
  const auto handler = [&](std::uint32_t) {
    ++called;
    loop_.Forget(pipe_.first.get());
    loop_.Forget(other.first.get());
  };
  ASSERT_TRUE(loop_.Watch(pipe_.first.get(), {}, handler));
  ASSERT_TRUE(loop_.Watch(other.first.get(), {}, handler));
  Write();
  ASSERT_EQ(::write(other.second.get(), "x", 1), 1);
  loop_.After(std::chrono::milliseconds(50), [this] { loop_.Stop(); });
  ASSERT_TRUE(loop_.Run());
  EXPECT_EQ(called, 1);
}

TEST_F(LoopTest, tells_of_all_that_is_ready_however_many) {
  std::vector<os::FdPair> pipes;
  std::size_t called = 0;
  for (int i = 0; i < 300; ++i) {
    pipes.push_back(os::MakePipe().value());
    ASSERT_TRUE(loop_.Watch(pipes.back().first.get(), {}, [&](std::uint32_t) {
      if (++called == pipes.size()) loop_.Stop();
    }));
    ASSERT_EQ(::write(pipes.back().second.get(), "x", 1), 1);
  }
  loop_.After(std::chrono::seconds(20), [this] { loop_.Stop(); });
  ASSERT_TRUE(loop_.Run());
  EXPECT_EQ(called, pipes.size());
}

TEST_F(LoopTest, timers_end_in_their_order_unless_they_are_cancelled) {
  std::string order;
  loop_.After(std::chrono::milliseconds(20), [&] {
    order += "b";
    loop_.Stop();
  });
  loop_.After(std::chrono::milliseconds(5), [&] { order += "a"; });
  loop_.Cancel(loop_.After(std::chrono::milliseconds(5), [&] { order += "x"; }));
  ASSERT_TRUE(loop_.Run());
  EXPECT_EQ(order, "ab");
}

}  // namespace
}  // namespace caisson::egress::gate
