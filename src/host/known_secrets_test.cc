// SPDX-License-Identifier: Apache-2.0
#include "host/known_secrets.h"

#include <gtest/gtest.h>

namespace caisson::host {
namespace {

TEST(KnownSecrets, finds_each_line_of_a_secret_that_has_several) {
  KnownSecrets secrets;
  secrets.Add({{"-----BEGIN KEY-----\r\nMIIEvQIBADAN\r\nshort\n", "[[pem]]"}});
  EXPECT_EQ(secrets.Redact("1 MIIEvQIBADAN"), "1 [[pem]]");
  EXPECT_EQ(secrets.Redact("-----BEGIN KEY-----"), "[[pem]]");
  EXPECT_EQ(secrets.Redact("a short word"), "a short word");
  EXPECT_EQ(secrets.Redact(R"("-----BEGIN KEY-----\r\nMIIEvQIBADAN\r\nshort\n")"), "\"[[pem]]\"");
}

}  // namespace
}  // namespace caisson::host
