// Headers of files from a storage that fails.
#include "session/stream/object_headers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stream/flaky_source.h"

namespace sluice {
namespace {

using stream_test::FlakySource;
using testing::HasSubstr;

const absl::Status kBusy = absl::UnavailableError("busy");

class ObjectHeadersTest : public testing::Test {
 protected:
  // An object with a header of `header_bytes`, whose first reads end as `outcomes` say.
  void Add(size_t header_bytes, std::vector<absl::Status> outcomes, bool is_silent = false) {
    std::string header(header_bytes, ' ');
    for (size_t i = 0; i < 8; ++i) {
      header[i] = static_cast<char>((header_bytes - 8) >> (8 * i) & 0xFF);
    }
    header.replace(8, 2, "{}");
    const std::string content = absl::StrCat(header, std::string(14, 'x'));
    headers_.push_back(header);
    files_.push_back({absl::StrCat("shard-", files_.size(), ".safetensors"),
                      static_cast<int64_t>(content.size())});
    objects_.push_back({content, std::move(outcomes), is_silent});
  }
  absl::StatusOr<std::vector<std::string>> Read() {
    FlakySource source(objects_);
    source.on_poll = [this](int poll) { stop_ = poll == stop_at_; };
    return ReadObjectHeaders(&source, files_, ItemFormat::kSafetensors, retry_, stop_);
  }

  std::vector<std::string> headers_;
  std::vector<ObjectFile> files_;
  std::vector<FlakySource::Object> objects_;
  RetryOptions retry_ = {.attempts_max = 3, .backoff = absl::Milliseconds(1)};
  WorkStop stop_ = false;
  int stop_at_ = 0;  // the poll of the source amid which it is told to stop
};

TEST_F(ObjectHeadersTest, WhatPassesIsReadAgain) {
  Add(64, {});
  Add(64, {kBusy, kBusy});
  Add(64 << 10, {kBusy});
  // Longer than what is read of every file at first.
  Add(128 << 10, {absl::OkStatus(), kBusy});
  const absl::StatusOr<std::vector<std::string>> headers = Read();
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(*headers, headers_);
}

TEST_F(ObjectHeadersTest, WhatDoesNotPassNamesTheFile) {
  Add(64, {});
  Add(64, {kBusy, kBusy, kBusy});
  const absl::Status busy = Read().status();
  EXPECT_TRUE(absl::IsUnavailable(busy)) << busy;
  EXPECT_THAT(std::string(busy.message()),
              HasSubstr("shard-1.safetensors: gave up after 3 attempts"));
  objects_[1].outcomes = {absl::PermissionDeniedError("not for you")};
  const absl::Status refused = Read().status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("shard-1.safetensors"));
}

TEST_F(ObjectHeadersTest, AnEmptyFileNamesTheFile) {
  Add(64, {});
  files_.push_back({"empty.safetensors", 0});
  objects_.push_back({""});
  const absl::Status status = Read().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("empty.safetensors"));
}

TEST_F(ObjectHeadersTest, AStopEndsPausesAndSilence) {
  retry_.backoff = absl::Hours(1);
  Add(64, {kBusy});
  Add(64, {}, true);
  stop_at_ = 2;
  const absl::Status status = Read().status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace sluice
