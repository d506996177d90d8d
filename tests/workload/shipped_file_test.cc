// Names of models that are no paths: found in share/sluice, and files here come first.
#include "workload/shipped_file.h"

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

class ShippedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(share_ + "/models");
    ASSERT_TRUE(WriteFile(share_ + "/models/small.json", "shipped").ok());
    ASSERT_TRUE(WriteFile(share_ + "/models/bare", "bare").ok());
    ASSERT_TRUE(WriteFile(here_, "here").ok());
  }

  const OwnFolder folder_;
  const std::string share_ = folder_.path().string();
  const std::string here_ = share_ + "/own.json";
};

TEST_F(ShippedFileTest, NamesAreLookedForInTheFolder) {
  EXPECT_EQ(ReadShippedFile("small", "models", share_).value(), "shipped");
  EXPECT_EQ(ReadShippedFile("small.json", "models", share_).value(), "shipped");
  EXPECT_EQ(ReadShippedFile("bare", "models", share_).value(), "bare");
}

TEST_F(ShippedFileTest, PathsAreTakenAsTheyAre) {
  EXPECT_EQ(ReadShippedFile(here_, "models", share_).value(), "here");
  EXPECT_TRUE(absl::IsNotFound(ReadShippedFile("./small.json", "models", share_).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadShippedFile("../models/small", "models", share_).status()));
}

TEST_F(ShippedFileTest, FilesHereComeFirst) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(share_);
  ASSERT_TRUE(WriteFile("small", "mine").ok());
  EXPECT_EQ(ReadShippedFile("small", "models", share_).value(), "mine");
  std::filesystem::current_path(before);
}

TEST_F(ShippedFileTest, WhatIsNowhereNamesBothPlaces) {
  const absl::Status status = ReadShippedFile("large", "models", share_).status();
  EXPECT_THAT(status, Fails(absl::StatusCode::kNotFound,
                            testing::AllOf(testing::HasSubstr("cannot open large"),
                                           testing::HasSubstr(share_ + "/models/large.json"))));
}

}  // namespace
}  // namespace sluice::bench
