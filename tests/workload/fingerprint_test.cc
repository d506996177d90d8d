// Fingerprints against sums written out by hand.
#include "workload/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;

LocalPart Part(const std::vector<int64_t>& shape, int rank) {
  const Layout layout{*Mesh::Create({2}, {0, 1}), {Placement::Shard(1)}};
  return *LocalPart::Create(layout, shape, rank);
}

template <typename T>
Fingerprint Take(const LocalPart& part, DType dtype, const std::vector<T>& values) {
  return TakeFingerprint(part, dtype, reinterpret_cast<const std::byte*>(values.data()));
}

TEST(Fingerprint, SumsValuesPlainAndByPosition) {
  const Fingerprint f = Take<float>(Part({2, 4}, 1), DType::kF32, {5, 0, 65520, 7});
  EXPECT_THAT(f.local_shape, ElementsAre(2, 2));
  EXPECT_EQ(f.checksum, 65532);
  EXPECT_EQ(f.ordered_checksum, 1u * 5 + 3u * 65520 + 4u * 7);
  EXPECT_EQ(f.first, 2);
  EXPECT_EQ(f.last, 7);
}

TEST(Fingerprint, APermutationShows) {
  const LocalPart part = Part({2, 4}, 0);
  const Fingerprint a = Take<int64_t>(part, DType::kI64, {1, 2, 3, 4});
  const Fingerprint b = Take<int64_t>(part, DType::kI64, {2, 1, 3, 4});
  EXPECT_EQ(a.checksum, b.checksum);
  EXPECT_NE(a.ordered_checksum, b.ordered_checksum);
}

TEST(Fingerprint, OwnsNothing) {
  const Fingerprint f = Take<float>(Part({3, 1}, 1), DType::kF32, {});
  EXPECT_THAT(f.local_shape, ElementsAre(3, 0));
  EXPECT_EQ(f.checksum, 0);
  EXPECT_FALSE(f.first.has_value());
  EXPECT_FALSE(f.last.has_value());
}

TEST(Fingerprint, ReadsSmallFloatsByTheirFormats) {
  const LocalPart part = Part({1, 2}, 0);  // one element
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0x67ff}).checksum, 2047);
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0xc500}).checksum, -5);
  EXPECT_EQ(Take<uint16_t>(part, DType::kBF16, {0x437a}).checksum, 250);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0x7e}).checksum, 448);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0x52}).checksum, 10);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0x46}).checksum, 6);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0x7b}).checksum, 57344);
}

TEST(Fingerprint, WhatIsNoNumberCountsAsZero) {
  const LocalPart part = Part({1, 2}, 0);
  EXPECT_EQ(Take<float>(part, DType::kF32, {NAN}).checksum, 0);
  EXPECT_EQ(Take<double>(part, DType::kF64, {std::numeric_limits<double>::infinity()}).checksum, 0);
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0x7c00}).checksum, 0);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0xff}).checksum, 0);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0xff}).checksum, 0);
}

TEST(Fingerprint, IntegersKeepTheirSign) {
  const LocalPart part = Part({1, 2}, 0);
  EXPECT_EQ(Take<int8_t>(part, DType::kI8, {-3}).checksum, -3);
  EXPECT_EQ(Take<uint8_t>(part, DType::kU8, {253}).checksum, 253);
  EXPECT_EQ(Take<int16_t>(part, DType::kI16, {-300}).checksum, -300);
  EXPECT_EQ(Take<uint16_t>(part, DType::kU16, {65000}).checksum, 65000);
  EXPECT_EQ(Take<uint32_t>(part, DType::kU32, {4000000000}).checksum, 4000000000);
  EXPECT_EQ(Take<uint64_t>(part, DType::kU64, {~uint64_t{0}}).checksum, -1) << "mod 2^64";
  EXPECT_EQ(Take<uint8_t>(part, DType::kBool, {1}).checksum, 1);
}

}  // namespace
}  // namespace sluice::bench
