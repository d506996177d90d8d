// What ranks tell each other before a stream begins, and what comes of it.
#include "session/stream/stream_start.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::HasSubstr;

StreamOptions Options() {
  StreamOptions options;
  options.selection = {1, 2, 90};
  return options;
}

TEST(StreamStartTest, RequestsRoundTrip) {
  StreamOptions options = Options();
  options.order.cursor = std::string(3000, 'c');
  const absl::StatusOr<StreamRequest> request = ParseStreamRequest(StreamRequestText(options), 4);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->selection, options.selection);
  options.order.cursor.back() = 'd';
  EXPECT_NE(ParseStreamRequest(StreamRequestText(options), 4)->cursor_hash, request->cursor_hash);
}

TEST(StreamStartTest, ARequestOfAnotherBuildNamesItsRank) {
  const std::string good = StreamRequestText(Options());
  std::string other = good;
  other[0] = static_cast<char>(other[0] + 1);
  for (const std::string& text : {std::string(), std::string("abc"), good + "x", other}) {
    const absl::Status status = ParseStreamRequest(text, 4).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 4 runs another build"));
  }
}

TEST(StreamStartTest, ACursorOfAnotherBlockSizeIsRefused) {
  StreamOptions options = Options();
  options.order.shuffle = true;
  options.order.shuffle_block_items = 16;
  std::vector<StreamRequest> requests(1);
  const absl::StatusOr<StreamStart> start = PlanStream(options, 100, 0, 0, requests);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->order.block_items, 16);
  requests[0].cursor = start->order.ToText();
  EXPECT_TRUE(PlanStream(options, 100, 0, 0, requests).ok());
  options.order.shuffle_block_items = 8;
  const std::string message(PlanStream(options, 100, 0, 0, requests).status().message());
  EXPECT_THAT(message, HasSubstr("block 16"));
  EXPECT_THAT(message, HasSubstr("in blocks of 8"));
  options.order.shuffle_block_items = absl::nullopt;
  EXPECT_FALSE(PlanStream(options, 100, 0, 0, requests).ok());
}

TEST(StreamStartTest, RefusesMorePositionsThanThereCanBe) {
  StreamOptions options = Options();
  const std::vector<StreamRequest> requests(1);
  options.order.epochs = (int64_t{1} << 24) - 1;
  absl::Status status = PlanStream(options, int64_t{1} << 39, 0, 0, requests).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("epochs"));
  status = PlanStream(options, StreamPlan::kItemsMax + 1, 0, 0, requests).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("items are too many"));
  EXPECT_TRUE(PlanStream(options, int64_t{1} << 30, 0, 0, requests).ok());
}

}  // namespace
}  // namespace sluice
