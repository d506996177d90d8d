// Fill, check and damage find each other out.
#include "workload/local_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "workload/fill.h"

namespace sluice::bench {
namespace {

constexpr DType kAll[] = {DType::kF64,      DType::kF32,    DType::kF16,        DType::kBF16,
                          DType::kF8E4M3,   DType::kF8E5M2, DType::kI64,        DType::kI32,
                          DType::kI8,       DType::kU8,     DType::kI16,        DType::kU16,
                          DType::kU32,      DType::kU64,    DType::kBool,       DType::kF8E8M0,
                          DType::kF4E2M1x2, DType::kI4x2,   DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz,
                          DType::kC64,      DType::kC128};

LocalPart Part(const std::vector<int64_t>& shape, const char* placements, int rank) {
  const Layout layout{*Mesh::Create({2}, {0, 1}), *ParsePlacements(placements)};
  return *LocalPart::Create(layout, shape, rank);
}

uint32_t FillValue(int64_t g, int64_t seed, uint32_t modulus) {
  uint32_t hash = 0;
  ElementHash::Plain(seed).Write(g, 1, &hash);
  return hash % modulus;
}

TEST(FillValue, IsTheDocumentedHash) {
  EXPECT_EQ(FillValue(0, 0, 65521), 0u);
  EXPECT_EQ(FillValue(1, 0, 65521), 2654435761u % 65521);
  // 3 * 2654435761 = 7963307283; less 2^32: 3668339987.
  EXPECT_EQ(FillValue(3, 0, 251), 3668339987u % 251);
  EXPECT_EQ(FillValue(1, 2, 251), FillValue(3, 0, 251));
  EXPECT_EQ(FillValue((int64_t{1} << 32) + 5, 0, 7), FillValue(5, 0, 7));
}

TEST(FillModulus, IsTheNarrowestOfTheCase) {
  TransferSpec spec;
  spec.tensors.resize(2);
  EXPECT_EQ(FillModulus(spec), 65521u);
  spec.tensors[1].dst_dtype = DType::kF16;
  EXPECT_EQ(FillModulus(spec), 2039u);
  spec.tensors[0].src_dtype = DType::kF8E5M2;
  EXPECT_EQ(FillModulus(spec), 7u);
  EXPECT_EQ(FillModulus(DType::kI16), 127u);
  EXPECT_EQ(FillModulus(DType::kU16), 127u);
  EXPECT_EQ(FillModulus(DType::kU32), 65521u);
  EXPECT_EQ(FillModulus(DType::kU64), 65521u);
  EXPECT_EQ(FillModulus(DType::kBool), 2u);
}

std::vector<uint32_t> Hashes(const ElementHash& hash, int64_t g, int64_t count) {
  std::vector<uint32_t> hashes(static_cast<size_t>(count));
  hash.Write(g, count, hashes.data());
  return hashes;
}

TEST(ElementHash, PlainIsTheDocumentedProduct) {
  const std::vector<uint32_t> hashes = Hashes(ElementHash::Plain(7, 3), 90, 20);
  for (uint64_t i = 0; i < hashes.size(); ++i) {
    EXPECT_EQ(hashes[i], ((90 + i + 7) * 2654435761u + 3 * 40503u) % (uint64_t{1} << 32)) << i;
  }
}

// Word for word as docs/layouts.md gives it.
uint32_t DocumentedMixedHash(const std::string& name, uint64_t g, uint64_t seed, int q) {
  const auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  uint64_t text = 0xcbf29ce484222325u;
  for (const char c : name) text = (text ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  const uint64_t s = mix(mix(mix(text + seed) + static_cast<uint64_t>(int64_t{q} + 1)) + (g >> 32));
  uint32_t h = (static_cast<uint32_t>(g) ^ static_cast<uint32_t>(s)) * 2654435761u;
  h = ((h ^ (h >> 15)) + static_cast<uint32_t>(s >> 32)) * 2246822519u;
  return h ^ (h >> 13);
}

TEST(ElementHash, MixedIsAsDocumentedAlsoAcrossAHighHalf) {
  for (const int64_t g : {int64_t{0}, (int64_t{1} << 32) - 30, (int64_t{5} << 32) + 77}) {
    const std::vector<uint32_t> hashes = Hashes(ElementHash::Mixed("layers.7.q", 12, 4), g, 60);
    for (int64_t i = 0; i < 60; ++i) {
      ASSERT_EQ(hashes[static_cast<size_t>(i)],
                DocumentedMixedHash("layers.7.q", static_cast<uint64_t>(g + i), 12, 4))
          << g << " + " << i;
    }
  }
}

// Of `count` values, how many are equal in place.
int64_t Alike(const ElementHash& a, int64_t a_begin, const ElementHash& b, int64_t b_begin,
              int64_t count) {
  const std::vector<uint32_t> x = Hashes(a, a_begin, count);
  const std::vector<uint32_t> y = Hashes(b, b_begin, count);
  int64_t alike = 0;
  for (size_t i = 0; i < x.size(); ++i) alike += x[i] % 251 == y[i] % 251 ? 1 : 0;
  return alike;
}

TEST(ElementHash, MixedTellsTensorsOffsetsSeedsAndContributionsApart) {
  constexpr int64_t kCount = 100000;
  constexpr int64_t kFew = kCount / 251 * 2;  // twice what chance makes equal
  const ElementHash mine = ElementHash::Mixed("a", 0);
  EXPECT_EQ(Alike(mine, 9, mine, 9, kCount), kCount);
  EXPECT_LT(Alike(mine, 0, ElementHash::Mixed("b", 0), 0, kCount), kFew);
  EXPECT_LT(Alike(mine, 0, ElementHash::Mixed("a", 1), 0, kCount), kFew);
  EXPECT_LT(Alike(mine, 0, ElementHash::Mixed("a", 0, 0), 0, kCount), kFew);
  EXPECT_LT(Alike(ElementHash::Mixed("a", 0, 0), 0, ElementHash::Mixed("a", 0, 1), 0, kCount),
            kFew);
  for (const int64_t offset : {1, 2, 3, 4, 64, 251, 4096, 65521, 1 << 20, 1 << 31}) {
    EXPECT_LT(Alike(mine, 0, mine, offset, kCount), kFew) << offset;
  }
  for (int bit = 32; bit < 63; ++bit) {
    EXPECT_LT(Alike(mine, 5, mine, (int64_t{1} << bit) + 5, kCount), kFew) << bit;
  }
}

// The classic error of 32-bit arithmetic: right within a rank's part, 2^32 elements off.
TEST(CountWrong, TheMixedFillAloneSeesAnOffsetOfTwoToTheThirtyTwo) {
  std::vector<int> ranks(1 << 12);
  std::iota(ranks.begin(), ranks.end(), 0);
  const Layout layout{*Mesh::Create({1 << 12}, ranks), *ParsePlacements("S(0)")};
  const std::vector<int64_t> shape = {int64_t{1} << 33};
  const auto right = LocalPart::Create(layout, shape, 2048 + 17);
  const auto off = LocalPart::Create(layout, shape, 17);
  ASSERT_EQ(*right->first() - *off->first(), int64_t{1} << 32);
  std::vector<std::byte> data(static_cast<size_t>(right->elements()));
  const Filler plain(DType::kU8, 251, ElementHash::Plain(0));
  FillPart(*off, plain, data.data());
  EXPECT_EQ(CountWrong(*right, plain, data.data()), 0);
  const Filler mixed(DType::kU8, 251, ElementHash::Mixed("tensor", 0));
  FillPart(*off, mixed, data.data());
  EXPECT_GT(CountWrong(*right, mixed, data.data()), right->elements() / 251 * 249);
}

// One element alone: its fingerprint's checksum decodes what Filler encoded.
int64_t Decoded(DType dtype, const std::byte* element) {
  const Layout one{*Mesh::Create({1}, {0}), {Placement::Replicate()}};
  const auto part = LocalPart::Create(one, std::vector<int64_t>{1}, 0);
  return TakeFingerprint(*part, dtype, element).checksum;
}

TEST(Filler, EveryValueIsExactInItsDType) {
  for (const DType dtype : kAll) {
    const uint32_t modulus = FillModulus(dtype);
    const Filler filler(dtype, modulus, ElementHash::Plain(11));
    constexpr int64_t kCount = 9000;
    const int64_t size = DTypeBytes(dtype);
    std::vector<std::byte> data(static_cast<size_t>(kCount * size));
    filler.Write(5, kCount, data.data());
    std::set<int64_t> seen;
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t value = Decoded(dtype, data.data() + i * size);
      ASSERT_EQ(value, FillValue(5 + i, 11, modulus)) << DTypeName(dtype) << " element " << i;
      seen.insert(value);
    }
    EXPECT_GE(seen.size(), std::min<size_t>(modulus, 1500)) << DTypeName(dtype);
    const Filler mixed(dtype, modulus, ElementHash::Mixed("x", 1));
    mixed.Write(0, kCount, data.data());
    for (int64_t i = 0; i < kCount; ++i) {
      uint32_t hash = 0;
      ElementHash::Mixed("x", 1).Write(i, 1, &hash);
      ASSERT_EQ(Decoded(dtype, data.data() + i * size), hash % modulus) << DTypeName(dtype);
    }
  }
}

TEST(Filler, PoisonIsNoFillValue) {
  for (const DType dtype : kAll) {
    const auto size = static_cast<size_t>(DTypeBytes(dtype));
    const std::vector<std::byte> poison(size, std::byte{kPoisonByte});
    std::vector<std::byte> value(size);
    const Filler filler(dtype, FillModulus(dtype), ElementHash::Plain(0));
    for (int64_t g = 0; g < 70000; ++g) {
      filler.Write(g, 1, value.data());
      ASSERT_NE(std::memcmp(value.data(), poison.data(), size), 0) << DTypeName(dtype);
    }
  }
}

TEST(CountWrong, FindsEachDifferentElementAndNoOther) {
  const LocalPart part = Part({300, 70}, "S(1)", 1);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kU8}) {
    const Filler filler(dtype, FillModulus(dtype), ElementHash::Plain(3));
    const int64_t size = DTypeBytes(dtype);
    std::vector<std::byte> data(static_cast<size_t>(part.elements() * size));
    FillPart(part, filler, data.data());
    EXPECT_EQ(CountWrong(part, filler, data.data()), 0);
    for (const int64_t element : {int64_t{0}, int64_t{35}, part.elements() - 1}) {
      data[static_cast<size_t>((element + 1) * size - 1)] ^= std::byte{1};
    }
    EXPECT_EQ(CountWrong(part, filler, data.data()), 3);
    // Right values at wrong places are wrong.
    EXPECT_GT(
        CountWrong(part, Filler(dtype, FillModulus(dtype), ElementHash::Plain(4)), data.data()),
        10000);
  }
}

TEST(CountWrong, ASampleHasFourKiBOfEvery64AndTheLast) {
  // 2,500 elements of 4 bytes in each of 300 runs.
  const LocalPart part = Part({300, 5000}, "S(1)", 1);
  const Filler filler(DType::kF32, FillModulus(DType::kF32), ElementHash::Plain(3));
  std::vector<float> data(static_cast<size_t>(part.elements()));
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  FillPart(part, filler, bytes);
  EXPECT_EQ(CountWrong(part, filler, bytes, true), 0);
  std::fill(data.begin(), data.end(), -1.0F);
  int64_t sampled = 0;
  for (int64_t i = 0; i < part.elements(); ++i) {
    if (i % (16 << 10) < 1024 || i >= part.elements() - 1024) ++sampled;
  }
  EXPECT_EQ(CountWrong(part, filler, bytes, true), sampled);
  EXPECT_EQ(CountWrong(part, filler, bytes), part.elements());
}

TEST(CountWrong, ASampleOfLittleIsAllOfIt) {
  const LocalPart part = Part({7, 6}, "R", 0);
  const Filler filler(DType::kF32, FillModulus(DType::kF32), ElementHash::Plain(3));
  const std::vector<float> data(42, -1.0F);
  EXPECT_EQ(CountWrong(part, filler, reinterpret_cast<const std::byte*>(data.data()), true), 42);
}

// Writes one pattern everywhere.
class Constant final : public Values {
 public:
  explicit Constant(uint8_t unit) : Values(DType::kF8E5M2), unit_(unit) {}
  void Write(int64_t /*g*/, int64_t count, std::byte* dst) const override {
    std::memset(dst, unit_, static_cast<size_t>(count));
  }

 private:
  uint8_t unit_;
};

TEST(CountWrong, WhatIsNoNumberEqualsItsLikeButNotThePoison) {
  const LocalPart part = Part({4}, "R", 0);
  const Constant nan(0x7e);
  const auto wrong = [&](std::vector<uint8_t> data) {
    return CountWrong(part, nan, reinterpret_cast<const std::byte*>(data.data()));
  };
  EXPECT_EQ(wrong({0x7e, 0x7d, 0xfe, 0x7f}), 0);
  EXPECT_EQ(wrong({0x7e, 0xff, 0x7c, 0x00}), 3) << "poison, infinity, zero";
}

TEST(FlipBytes, DamagesExactlySoManyBytesOverAllSpans) {
  for (const int64_t bytes : {0, 1, 2, 7, 99, 100, 150, 200, 1000}) {
    const int64_t kSpans[] = {13, 0, 50, 1, 36};
    int64_t damaged_bytes = 0;
    int64_t damaged_elements = 0;
    int spans_hit = 0;
    ElementSpan span{0, 0, 100};
    for (const int64_t count : kSpans) {
      span.count = count;
      std::vector<std::byte> data(static_cast<size_t>(2 * count) + 1);
      FlipBytes(bytes, span, 2, data.data());
      EXPECT_EQ(data.back(), std::byte{0}) << "outside of the span";
      for (int64_t i = 0; i < count; ++i) {
        const int here = (data[static_cast<size_t>(2 * i)] != std::byte{0} ? 1 : 0) +
                         (data[static_cast<size_t>(2 * i + 1)] != std::byte{0} ? 1 : 0);
        damaged_bytes += here;
        damaged_elements += here > 0 ? 1 : 0;
      }
      spans_hit += data != std::vector<std::byte>(data.size()) ? 1 : 0;
      span.begin += count;
    }
    EXPECT_EQ(damaged_bytes, std::min<int64_t>(bytes, 200));
    EXPECT_EQ(damaged_elements, std::min<int64_t>(bytes, 100));
    EXPECT_GE(spans_hit, bytes >= 7 ? 3 : 0);
  }
}

TEST(FlipBytes, ChangesTheIntegerOfEveryFillValue) {
  for (const DType dtype : kAll) {
    const Filler filler(dtype, FillModulus(dtype), ElementHash::Plain(0));
    std::vector<std::byte> element(static_cast<size_t>(DTypeBytes(dtype)));
    for (int64_t g = 0; g < 70000; ++g) {
      filler.Write(g, 1, element.data());
      FlipBytes(1, {0, 1, 1}, DTypeBytes(dtype), element.data());
      ASSERT_NE(Decoded(dtype, element.data()), FillValue(g, 0, FillModulus(dtype)))
          << DTypeName(dtype) << " element " << g;
    }
  }
}

}  // namespace
}  // namespace sluice::bench
