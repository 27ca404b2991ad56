// SPDX-License-Identifier: Apache-2.0
#include "vault/vault.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "errors/graph.h"
#include "errors/store.h"
#include "errors/vault.h"
#include "json/reader.h"
#include "json/writer.h"
#include "store/sqlite/workflow_store.h"
#include "vault/seal.h"

namespace caisson::vault {
namespace {

constexpr char kCanary[] = "canary-3f9a-secret";

class VaultTest : public ::testing::Test {
 protected:
  VaultTest() {
    std::string pattern = ::testing::TempDir() + "caisson-vault-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    store_ =
        store::sqlite::OpenWorkflows(directory_ + "/runs.db", store::sqlite::Durability::kNormal)
            .value();
  }
  ~VaultTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  static Key KeyOf(char digit) { return Key::Parse(std::string(64, digit)).value(); }
  Vault Opened(char digit = 'a') { return Vault::Open(*store_, KeyOf(digit)).value(); }
  static Result<json::Value> Get(Vault& vault, const char* placeholder) {
    return vault.Resolve(*graph::ParseCredentialBody(placeholder));
  }
  // Everything on the disk.
  std::string AllBytes() const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

  std::string directory_;
  std::unique_ptr<store::WorkflowStore> store_;
};

TEST_F(VaultTest, GivesASecretByNameAndById) {
  Vault vault = Opened();
  ASSERT_TRUE(vault.Put("api key", "secret", kCanary));
  EXPECT_EQ(Get(vault, "api key")->as_string(), kCanary);
  EXPECT_EQ(Get(vault, "api key#secret")->as_string(), kCanary);
  const std::string id = List(*store_)->front().id;
  EXPECT_EQ(Get(vault, id.c_str())->as_string(), kCanary);
  EXPECT_EQ(Get(vault, "other").error().code, errors::kGraphCredentialNotFound);
  EXPECT_EQ(Get(vault, "api key#oauth").error().code, errors::kGraphCredentialPath);
}

TEST_F(VaultTest, GivesThePartsOfTokens) {
  Vault vault = Opened();
  ASSERT_TRUE(vault.Put("o", "oauth", *json::Read(R"({"access_token": "a", "expires_at": "z"})")));
  EXPECT_EQ(*json::Write(*Get(vault, "o#oauth")),
            R"({"access_token":"a","refresh_token":null,"expires_at":"z"})");
  EXPECT_EQ(Get(vault, "o#oauth.access_token")->as_string(), "a");
  EXPECT_TRUE(Get(vault, "o#oauth.refresh_token")->is_null());
  EXPECT_EQ(Get(vault, "o#oauth.scope").error().message,
            "OAuth token payload does not expose attribute 'scope'. Available: access_token, "
            "refresh_token, expires_at");
}

TEST_F(VaultTest, KeepsNoValueInTheOpen) {
  Vault vault = Opened();
  ASSERT_TRUE(vault.Put("k", "secret", kCanary));
  EXPECT_EQ(AllBytes().find(kCanary), std::string::npos);
  EXPECT_EQ(AllBytes().find(std::string(64, 'a')), std::string::npos);
}

TEST_F(VaultTest, RefusesAnotherKey) {
  ASSERT_TRUE(Opened('a').Put("k", "secret", kCanary));
  EXPECT_EQ(Vault::Open(*store_, KeyOf('b')).error().code, errors::kVaultWrongKey);
  // An emptied vault may have any key.
  ASSERT_TRUE(Remove(*store_, "k"));
  EXPECT_TRUE(Vault::Open(*store_, KeyOf('b')).has_value());
}

TEST_F(VaultTest, ChangesItsKey) {
  Vault vault = Opened('a');
  ASSERT_TRUE(vault.Put("k", "secret", kCanary));
  Vault stale = Opened('a');
  ASSERT_TRUE(vault.ChangeKey(KeyOf('b')));
  EXPECT_EQ(Get(vault, "k")->as_string(), kCanary);
  EXPECT_EQ(Vault::Open(*store_, KeyOf('a')).error().code, errors::kVaultWrongKey);
  EXPECT_EQ(Get(stale, "k").error().code, errors::kVaultSealed);
  EXPECT_EQ(stale.Put("x", "secret", "y").error().code, errors::kVaultWrongKey);
  Vault again = Opened('b');
  EXPECT_EQ(Get(again, "k")->as_string(), kCanary);
}

TEST_F(VaultTest, NoticesASecretThatWasPutInThePlaceOfAnother) {
  Vault vault = Opened();
  ASSERT_TRUE(vault.Put("mine", "secret", "m"));
  ASSERT_TRUE(vault.Put("other", "secret", kCanary));
  ASSERT_TRUE(store_->Write([](store::WorkflowRows& rows) -> Result<void> {
    store::Secret mine = **rows.FindSecret("mine");
    mine.sealed = (*rows.FindSecret("other"))->sealed;
    return rows.PutSecret(mine);
  }));
  EXPECT_EQ(Get(vault, "mine").error().code, errors::kVaultSealed);
}

TEST_F(VaultTest, ReplacesUnderTheSameId) {
  Vault vault = Opened();
  ASSERT_TRUE(vault.Put("k", "secret", "1"));
  const std::string id = List(*store_)->front().id;
  ASSERT_TRUE(vault.Put("k", "secret", "2"));
  EXPECT_EQ(List(*store_)->size(), 1u);
  EXPECT_EQ(Get(vault, id.c_str())->as_string(), "2");
}

TEST_F(VaultTest, RefusesNamesAndValuesThatNoPlaceholderCouldHave) {
  Vault vault = Opened();
  for (const char* name : {"", " x", "a]]", "a#b", "a\nb"}) {
    EXPECT_EQ(vault.Put(name, "secret", "v").error().code, errors::kVaultValue) << name;
  }
  EXPECT_EQ(vault.Put("k", "secret", "").error().code, errors::kVaultValue);
  EXPECT_EQ(vault.Put("k", "secret", "\xff\xfe").error().code, errors::kVaultValue);
  EXPECT_EQ(vault.Put("k", "secret", 5).error().code, errors::kVaultValue);
  EXPECT_EQ(vault.Put("k", "oauth", "text").error().code, errors::kVaultValue);
  EXPECT_EQ(vault.Put("k", "other", "text").error().code, errors::kVaultValue);
}

TEST_F(VaultTest, ReadsItsKeyFromAnyPlace) {
  const std::string file = directory_ + "/key";
  ASSERT_TRUE(WriteNewKey(file));
  EXPECT_EQ(WriteNewKey(file).error().code, errors::kVaultKey);
  struct stat info{};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  const std::string text = ReadKey("@" + file)->ToText();
  EXPECT_EQ(text.size(), 64u);
  EXPECT_EQ(ReadKey("cmd:cat " + file)->ToText(), text);
  setenv("VAULT_TEST_KEY", text.c_str(), 1);
  EXPECT_EQ(ReadKey("env:VAULT_TEST_KEY")->ToText(), text);
  for (const char* place : {"env:VAULT_TEST_NONE", "@/nowhere", "cmd:exit 3", "cmd:echo short"}) {
    EXPECT_EQ(ReadKey(place).error().code, errors::kVaultKey) << place;
  }
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(ReadKey("@" + file).error().code, errors::kVaultKey);
  EXPECT_EQ(ReadKey("@" + file).error().message,
            "others than its owner may use the key file " + file);
  // A key itself is no place, and is not repeated.
  EXPECT_EQ(ReadKey(text).error().message.find(text), std::string::npos);
}

TEST(Seal, opens_with_its_key_for_its_owner_only) {
  const Key key = *Key::Random();
  const Key other = *Key::Random();
  const std::string sealed = Seal(key, "text", "owner");
  EXPECT_NE(sealed, Seal(key, "text", "owner"));
  EXPECT_EQ(*Unseal(key, sealed, "owner"), "text");
  EXPECT_FALSE(Unseal(other, sealed, "owner"));
  EXPECT_FALSE(Unseal(key, sealed, "somebody"));
  EXPECT_FALSE(Unseal(key, "", "owner"));
  EXPECT_FALSE(Unseal(key, "!", "owner"));
  EXPECT_FALSE(Unseal(key, sealed.substr(4), "owner"));
}

}  // namespace
}  // namespace caisson::vault
