// SPDX-License-Identifier: Apache-2.0
#include "http/router.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

Handler Nothing() {
  return {false, [](Exchange&) -> Result<void> { return {}; }};
}

Router Routes(const std::vector<std::string>& patterns) {
  Router router;
  for (const std::string& pattern : patterns) router.Add(pattern, Nothing());
  return router;
}

Request Asked(std::string method, std::string target) {
  Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  return request;
}

// The pattern that took the request, or the code of the refusal.
std::string Taken(const Router& router, std::string method, std::string target) {
  Request request = Asked(std::move(method), std::move(target));
  const auto handler = router.Route(request);
  return handler ? std::string(request.pattern) : std::string(handler.error().code.name);
}

TEST(Router, prefers_literals_and_goes_back_where_they_lead_nowhere) {
  const Router router = Routes(
      {"GET /a/{x}", "GET /a/b", "GET /a/{x}/c", "GET /a/b/d", "POST /a/{x}", "GET /{all...}"});
  ASSERT_TRUE(router.Check());
  EXPECT_EQ(Taken(router, "GET", "/a/b"), "GET /a/b");
  EXPECT_EQ(Taken(router, "GET", "/a/z"), "GET /a/{x}");
  EXPECT_EQ(Taken(router, "GET", "/a/b/c"), "GET /a/{x}/c");
  EXPECT_EQ(Taken(router, "GET", "/a/b/d"), "GET /a/b/d");
  EXPECT_EQ(Taken(router, "POST", "/a/b"), "POST /a/{x}");
  EXPECT_EQ(Taken(router, "GET", "/elsewhere/x"), "GET /{all...}");
  EXPECT_EQ(Taken(router, "GET", "/"), "GET /{all...}");
}

TEST(Router, tells_absent_paths_from_absent_methods) {
  const Router router = Routes({"GET /a/{x}", "DELETE /a/{x}", "PUT /a/b", "* /any"});
  EXPECT_EQ(Taken(router, "GET", "/b"), "http.not_found");
  EXPECT_EQ(Taken(router, "GET", "/a/x/"), "http.not_found");
  EXPECT_EQ(Taken(router, "GET", "/a/"), "http.not_found");
  EXPECT_EQ(Taken(router, "GET", "//a/x"), "http.not_found");
  EXPECT_EQ(Taken(router, "OPTIONS", "*"), "http.not_found");
  EXPECT_EQ(Taken(router, "BREW", "/any"), "* /any");
  Request request = Asked("POST", "/a/b");
  const auto refused = router.Route(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code.name, "http.method_not_allowed");
  EXPECT_EQ(refused.error().details, "DELETE, GET, PUT");
}

TEST(Router, get_takes_head_where_there_is_no_other) {
  const Router router = Routes({"GET /a", "GET /b", "HEAD /b"});
  EXPECT_EQ(Taken(router, "HEAD", "/a"), "GET /a");
  EXPECT_EQ(Taken(router, "HEAD", "/b"), "HEAD /b");
}

TEST(Router, decodes_segments_one_by_one) {
  const Router router = Routes({"GET /p/{id}/{port}/{rest...}", "GET /f/{name}"});
  Request request = Asked("GET", "/f/a%2Fb%20%C3%A4+c?x=1+2&y=%26&x=3&&z");
  ASSERT_TRUE(router.Route(request));
  EXPECT_EQ(request.Parameter("name"), "a/b ä+c");
  EXPECT_EQ(request.Parameter("other"), "");
  EXPECT_EQ(*request.Query("x"), "1 2");
  EXPECT_EQ(*request.Query("y"), "&");
  EXPECT_EQ(*request.Query("z"), "");
  EXPECT_EQ(request.Query("q"), nullptr);
  EXPECT_EQ(request.query.size(), 4u);
  Request deep = Asked("GET", "/p/s-1/8080/a%2Fb//c%20d/");
  ASSERT_TRUE(router.Route(deep));
  EXPECT_EQ(deep.Parameter("id"), "s-1");
  EXPECT_EQ(deep.Parameter("port"), "8080");
  EXPECT_EQ(deep.Parameter("rest"), "a%2Fb//c%20d/");
  Request bare = Asked("GET", "/p/s-1/8080");
  ASSERT_TRUE(router.Route(bare));
  EXPECT_EQ(bare.Parameter("rest"), "");
}

TEST(Router, refuses_path_tricks) {
  const Router router = Routes({"GET /f/{name}", "GET /g/{rest...}"});
  for (const char* target : {"/f/..", "/f/.", "/f/%2e%2E", "/f/.%2e", "/g/a/../b", "/f/%", "/f/%2",
                             "/f/%zz", "/f/%00", "/f/a?b=%zz", "/f/a?b=%00", "f/a", ""}) {
    EXPECT_EQ(Taken(router, "GET", target), "http.bad_request") << target;
  }
  EXPECT_EQ(Taken(router, "GET", "/f/..."), "GET /f/{name}");
  EXPECT_EQ(Taken(router, "GET", "/f/..%2fetc"),
            "GET /f/{name}");  // one segment, of that very name
}

TEST(Router, asks_the_host_route_first) {
  Router router = Routes({"GET /a"});
  const Handler preview = Nothing();
  router.SetHostRoute(
      [&](const Request& request) { return request.host == "x-80.example" ? &preview : nullptr; });
  Request request = Asked("GET", "/../%zz");
  request.host = "x-80.example";
  EXPECT_EQ(*router.Route(request), &preview);
  request.host = "other";
  EXPECT_FALSE(router.Route(request));
}

TEST(Router, tells_patterns_that_are_wrong) {
  for (const char* pattern :
       {"GET a", "GET", "/a", "GET /{", "GET /{}", "GET /{...}", "GET /{a...}/b", "G T /a"}) {
    EXPECT_FALSE(Routes({pattern}).Check()) << pattern;
  }
  EXPECT_FALSE(Routes({"GET /a/{x}", "GET /a/{y}"}).Check());
  EXPECT_TRUE(Routes({"GET /a/{x}", "PUT /a/{y}"}).Check());
}

}  // namespace
}  // namespace caisson::http
