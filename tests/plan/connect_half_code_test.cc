// Halves as bytes: what is written is read, and what nobody wrote is refused within limits.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/connect/byte_code.h"
#include "plan/connect/check_half.h"
#include "plan/connect/half_builder.h"
#include "plan/connect/half_code.h"
#include "plan/connect_halves.h"

namespace sluice {
namespace {

using testing::HasSubstr;

absl::StatusOr<Half> Decode(absl::string_view bytes, int ranks) {
  HalfRoom room;
  // A copy of the exact size, so that the address sanitizer sees a read past its end.
  const std::vector<char> copy(bytes.begin(), bytes.end());
  return DecodeHalf({copy.data(), copy.size()}, ranks, &room);
}

TEST(ByteCodeTest, NumbersComeBack) {
  ByteWriter out;
  const std::vector<uint64_t> numbers = {0, 1, 127, 128, 300, UINT32_MAX, uint64_t{1} << 63, ~0ull};
  for (const uint64_t number : numbers) out.Add(number);
  const std::vector<int64_t> signs = {0, -1, 1, INT64_MIN, INT64_MAX, -64, 64};
  for (const int64_t number : signs) out.AddSigned(number);
  ByteReader in(out.bytes());
  for (const uint64_t number : numbers) {
    uint64_t read = 1;
    EXPECT_TRUE(in.Take(&read));
    EXPECT_EQ(read, number);
  }
  for (const int64_t number : signs) {
    int64_t read = 5;
    EXPECT_TRUE(in.TakeSigned(&read));
    EXPECT_EQ(read, number);
  }
  EXPECT_TRUE(in.empty());
  uint64_t none = 0;
  EXPECT_FALSE(in.Take(&none));
}

TEST(ByteCodeTest, NumbersThatDoNotEndOrFit) {
  uint64_t number = 0;
  for (const std::string& bytes : {std::string("\x80"), std::string(9, '\xff'),
                                   std::string(10, '\xff'), std::string(9, '\xff') + "\x02"}) {
    ByteReader in(bytes);
    EXPECT_FALSE(in.Take(&number));
  }
}

TEST(HalfCodeTest, WhatIsWrittenIsRead) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    oracle::Dice dice(seed);
    const int ranks = static_cast<int>(dice.Between(1, 40));
    const Half half = RandomHalf(&dice, ranks);
    const std::string bytes = EncodeHalf(half);
    const auto read = Decode(bytes, ranks);
    ASSERT_TRUE(read.ok()) << read.status() << " seed " << seed;
    EXPECT_EQ(InWords(*read), InWords(half));
    EXPECT_EQ(EncodeHalf(*read), bytes);
  }
}

TEST(HalfCodeTest, AThousandTensorsAreSmall) {
  for (const int tensors : {1000, 10000}) {
    const std::string bytes = EncodeHalf(ModelHalf(tensors, 64));
    EXPECT_LT(bytes.size(), static_cast<size_t>(tensors) * 14);
    EXPECT_TRUE(Decode(bytes, 64).ok());
  }
}

TEST(HalfCodeTest, EveryShorterTextIsRefused) {
  oracle::Dice dice(3);
  const std::string bytes = EncodeHalf(RandomHalf(&dice, 8));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Decode(absl::string_view(bytes).substr(0, length), 8).ok()) << length;
  }
  EXPECT_THAT(std::string(Decode(bytes + "x", 8).status().message()),
              HasSubstr("bytes after its end"));
}

TEST(HalfCodeTest, RanksOutsideOfTheJobAreRefused) {
  const std::string bytes = EncodeHalf(ModelHalf(3, 64));
  EXPECT_TRUE(Decode(bytes, 64).ok());
  EXPECT_FALSE(Decode(bytes, 63).ok());
}

TEST(HalfCodeTest, RoomIsTakenByAllHalvesTogether) {
  const std::string bytes = EncodeHalf(ModelHalf(100, 64));
  const auto twice = [&bytes](HalfRoom room) {
    EXPECT_TRUE(DecodeHalf(bytes, 64, &room).ok());
    return DecodeHalf(bytes, 64, &room).status();
  };
  HalfRoom room;
  EXPECT_TRUE(twice(room).ok());
  room.tensors = 199;
  EXPECT_EQ(twice(room).code(), absl::StatusCode::kResourceExhausted);
  room = {};
  room.names_bytes = 5000;
  EXPECT_EQ(twice(room).code(), absl::StatusCode::kResourceExhausted);
  room = {};
  room.mesh_ranks = 127;
  EXPECT_EQ(twice(room).code(), absl::StatusCode::kResourceExhausted);
  room = {};
  room.kinds = 2 * static_cast<int64_t>(ModelHalf(100, 64).kinds.size());
  EXPECT_TRUE(twice(room).ok());
  --room.kinds;
  EXPECT_EQ(twice(room).code(), absl::StatusCode::kResourceExhausted);
}

// A kind takes three bytes here, and more than ten times as much once it is read.
TEST(HalfCodeTest, KindsThatNoTensorHasAreRefusedBeforeTheyAreRead) {
  Half half = ModelHalf(1, 4);
  ASSERT_FALSE(half.kinds.empty());
  half.kinds.assign(static_cast<size_t>(kHalfKindsMax) + 1,
                    {.shape = {}, .dtype = DType::kF32, .layout = half.kinds[0].layout});
  const std::string bytes = EncodeHalf(half);
  EXPECT_LT(static_cast<int64_t>(bytes.size()), kHalfBytesMax) << "as long as ranks may send it";
  const absl::Status status = Decode(bytes, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 1048576 kinds of tensors"));
  half.kinds.pop_back();
  EXPECT_TRUE(Decode(EncodeHalf(half), 4).ok());
}

Layout InBoxes(std::vector<Box> boxes, int rank = kHalfBoxesRank) {
  std::vector<RankBoxes> lists = {{rank, std::move(boxes)}};
  Layout layout;
  layout.boxes = *BoxList::Create(std::move(lists));
  return layout;
}

// `count` boxes of one element each.
Half HalfOfBoxes(int64_t count) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < count; ++i) boxes.push_back({{i}, {1}});
  HalfBuilder builder;
  const Layout layout = InBoxes(std::move(boxes));
  const int kind = builder.KindOf({count}, DType::kF32, layout);
  Half half = std::move(*builder.half());
  half.sources = {{"w", kind, absl::nullopt}};
  return half;
}

TEST(HalfCodeTest, BoxesOfAHalfAreLimited) {
  EXPECT_LT(EncodeHalf(HalfOfBoxes(10000)).size(), 20100u);
  const std::string bytes = EncodeHalf(HalfOfBoxes(100));
  HalfRoom room;
  room.boxes = 250;
  EXPECT_TRUE(DecodeHalf(bytes, 4, &room).ok());
  EXPECT_TRUE(DecodeHalf(bytes, 4, &room).ok());
  const absl::Status status = DecodeHalf(bytes, 4, &room).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("boxes in distinct layouts"));
  Half half = HalfOfBoxes(kHalfBoxesMax);
  EXPECT_TRUE(CheckHalf(half, 4).ok());
  half.layouts.push_back(InBoxes({{{0}, {1}}}));
  EXPECT_EQ(CheckHalf(half, 4).code(), absl::StatusCode::kResourceExhausted);
}

// Format, one layout of one list; the rank, how many boxes, their dimensions, and the boxes follow.
std::string BytesOfBoxes(int64_t rank, uint64_t count, uint64_t dims,
                         const std::vector<int64_t>& steps) {
  ByteWriter out;
  for (const uint64_t number :
       {uint64_t{kHalfFormat}, uint64_t{1}, uint64_t{kMeshDimsMax + 1}, uint64_t{1}}) {
    out.Add(number);
  }
  out.AddSigned(rank);
  out.Add(count);
  out.Add(dims);
  for (const int64_t step : steps) out.AddSigned(step);
  for (int i = 0; i < 6; ++i) out.Add(0);  // kinds, sources, targets, renames, two options
  return out.Take();
}

TEST(HalfCodeTest, BoxesThatNobodyMayHaveAreRefused) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const absl::Status status = Decode(bytes, 8).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  EXPECT_TRUE(Decode(BytesOfBoxes(0, 2, 1, {0, 3, 3, 0}), 8).ok());
  refused(BytesOfBoxes(0, 2, 1, {0, 3, 2, 0}), "overlap");
  refused(BytesOfBoxes(0, 1, 1, {0, 0}), "is empty");
  refused(BytesOfBoxes(0, 1, 1, {-1, 3}), "a box");
  refused(BytesOfBoxes(0, 1, 1, {0, -3}), "a box");
  refused(BytesOfBoxes(0, 2, 1, {INT64_MAX, 1, INT64_MAX, 0}), "a box");
  refused(BytesOfBoxes(0, 1, 1, {INT64_MAX, 1}), "lies in no tensor");
  refused(BytesOfBoxes(5, 1, 1, {0, 3}), "boxes");
  refused(BytesOfBoxes(0, 1, 9, std::vector<int64_t>(18, 1)), "boxes");
  refused(BytesOfBoxes(0, 0, 1, {}), "it has no boxes");
  refused(BytesOfBoxes(0, 1, 0, {}), "0 dimensions");
  refused(BytesOfBoxes(0, 1000, 1, {0, 3}), "boxes");
}

TEST(CheckHalfTest, BoxesLieInTheirTensorAndAreOfOneRank) {
  Half half = HalfOfBoxes(8);
  EXPECT_TRUE(CheckHalf(half, 1).ok());
  half.kinds[0].shape = {7};
  EXPECT_THAT(std::string(CheckHalf(half, 1).message()), HasSubstr("does not lie in a tensor"));
  half = HalfOfBoxes(8);
  half.layouts[0] = InBoxes({{{0}, {1}}}, 3);
  EXPECT_THAT(std::string(CheckHalf(half, 4).message()), HasSubstr("of one rank alone"));
  half.layouts[0] = {*Mesh::Create({1}, {0}), {Placement::Replicate()}, {}, {9}, {0}};
  EXPECT_EQ(CheckHalf(half, 4).code(), absl::StatusCode::kUnimplemented);
}

TEST(HalfBuilderTest, EqualLayoutsAndKindsAreOne) {
  HalfBuilder builder;
  const Layout a = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
  const Layout same = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
  const Layout other = {*Mesh::Create({2}, {1, 0}), {Placement::Shard(0)}};
  const int kind = builder.KindOf({4}, DType::kF32, a);
  EXPECT_EQ(builder.KindOf({4}, DType::kF32, a), kind);
  EXPECT_EQ(builder.KindOf({4}, DType::kF32, same), kind);
  EXPECT_NE(builder.KindOf({5}, DType::kF32, a), kind);
  EXPECT_NE(builder.KindOf({4}, DType::kF16, a), kind);
  EXPECT_NE(builder.KindOf({4}, DType::kF32, other), kind);
  Layout slice = a;
  slice.whole = {8};
  slice.offset = {1};
  EXPECT_NE(builder.KindOf({4}, DType::kF32, slice), kind);
  EXPECT_EQ(builder.half()->layouts.size(), 3u);
  EXPECT_EQ(builder.half()->kinds.size(), 5u);
}

TEST(CheckHalfTest, LimitsOfOneHalf) {
  Half half = ModelHalf(1, 4);
  EXPECT_TRUE(CheckHalf(half, 4).ok());
  EXPECT_THAT(std::string(CheckHalf(half, 3).message()),
              HasSubstr("rank 3 is outside the job's ranks 0..2"));
  half.layouts[0] = {*Mesh::Create(std::vector<int64_t>(65, 1), {0}),
                     std::vector<Placement>(65, Placement::Replicate())};
  EXPECT_THAT(std::string(CheckHalf(half, 4).message()), HasSubstr("a mesh of 65 dimensions"));
  half = ModelHalf(1, 4);
  half.renames = {{"t", "s"}, {"t", "u"}};
  EXPECT_THAT(std::string(CheckHalf(half, 4).message()), HasSubstr("it is given twice"));
  half = ModelHalf(1, 4);
  half.renames.resize(static_cast<size_t>(kHalfTensorsMax));
  EXPECT_THAT(std::string(CheckHalf(half, 4).message()),
              HasSubstr("1048577 tensors and renames; at most 1048576"));
}

}  // namespace
}  // namespace sluice
