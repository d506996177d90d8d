// The contents of generated items, against the formulas taken one element at a time.
#include "workload/shard_fill.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "workload/element.h"

namespace sluice::bench {
namespace {

using Bytes = std::vector<std::byte>;

struct Case {
  ElementType type;
  uint64_t modulus;  // 0: bytes of words
};

constexpr Case kCases[] = {
    {ElementType::kU8, 0},      {ElementType::kI8, 127},    {ElementType::kI16, 127},
    {ElementType::kBF16, 251},  {ElementType::kF16, 2039},  {ElementType::kI32, 65521},
    {ElementType::kI64, 65521}, {ElementType::kF32, 65521}, {ElementType::kF64, 65521}};

size_t SizeOf(ElementType type) { return static_cast<size_t>(ElementBytes(type)); }

uint64_t Expected(const Case& one, uint64_t seed, uint64_t item, uint64_t e) {
  if (one.modulus == 0) {
    const uint64_t word =
        (item + 1 + seed) * 0x9E3779B97F4A7C15u + (e / 8 + 1) * 0xD1B54A32D192ED03u;
    return word >> (8 * (e % 8)) & 0xFF;
  }
  return ((item * 2654435761u + e * 40503u + seed) & 0xFFFFFFFFu) % one.modulus;
}

// The element at `at`, as a number.
double Read(ElementType type, const std::byte* at) {
  return WithCodec(*DTypeOf(type), [&](auto codec) {
    typename decltype(codec)::Unit unit;
    std::memcpy(&unit, at, sizeof(unit));
    return static_cast<double>(codec.Load(unit));
  });
}

ShardFill Make(ElementType type, uint64_t seed) { return *ShardFill::Make(type, seed); }

TEST(ShardFillTest, ElementsAreThoseOfTheFormula) {
  for (const Case& one : kCases) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{12345678901234567890u}}) {
      const ShardFill fill = Make(one.type, seed);
      for (const uint64_t item : {0u, 4000000000u}) {
        // Long enough for two overflows of the 32-bit sum.
        Bytes bytes(220000 * SizeOf(one.type));
        fill.FillItem(static_cast<int64_t>(item), 0, absl::MakeSpan(bytes));
        for (size_t e = 0; e < 220000; ++e) {
          const uint64_t expected = Expected(one, seed, item, e);
          ASSERT_EQ(Read(one.type, &bytes[e * SizeOf(one.type)]), static_cast<double>(expected))
              << ElementName(one.type) << " " << item << " " << e;
          ASSERT_EQ(fill.Value(static_cast<int64_t>(item), static_cast<int64_t>(e)), expected);
        }
        EXPECT_EQ(fill.CheckItem(static_cast<int64_t>(item), 0, bytes), 0);
      }
    }
  }
}

TEST(ShardFillTest, AnyRangeIsAPartOfTheItem) {
  std::mt19937 random(1);
  for (const Case& one : kCases) {
    const ShardFill fill = Make(one.type, 3);
    const size_t unit = SizeOf(one.type);
    Bytes whole(3000 * unit);
    fill.FillItem(5, 0, absl::MakeSpan(whole));
    for (int i = 0; i < 2000; ++i) {
      const size_t begin = random() % 3000 * unit;
      const size_t size = random() % (i % 2 == 0 ? 20 : 3000) % (3000 - begin / unit) * unit;
      Bytes guarded(size + 16, std::byte{0xEE});
      const absl::Span<std::byte> part(guarded.data() + 1, size);  // not aligned
      fill.FillItem(5, static_cast<int64_t>(begin), part);
      ASSERT_EQ(size == 0 ? 0 : std::memcmp(part.data(), &whole[begin], size), 0)
          << ElementName(one.type) << " " << begin << " " << size;
      ASSERT_EQ(guarded[0], std::byte{0xEE});
      ASSERT_EQ(guarded[size + 1], std::byte{0xEE});
      ASSERT_EQ(fill.CheckItem(5, static_cast<int64_t>(begin), part), 0);
    }
  }
}

TEST(ShardFillTest, CountsWrongElements) {
  std::mt19937 random(2);
  for (const Case& one : kCases) {
    const ShardFill fill = Make(one.type, 3);
    const size_t unit = SizeOf(one.type);
    for (int i = 0; i < 300; ++i) {
      const size_t elements = 1 + random() % 1500;
      const size_t begin = random() % 50;
      Bytes bytes(elements * unit);
      fill.FillItem(9, static_cast<int64_t>(begin * unit), absl::MakeSpan(bytes));
      std::vector<bool> is_wrong(elements);
      for (int k = static_cast<int>(random() % 5); k > 0; --k) {
        const size_t e = random() % elements;
        if (is_wrong[e]) continue;
        is_wrong[e] = true;
        bytes[e * unit + random() % unit] ^= std::byte{0x10};
      }
      int64_t wrong = 0;
      for (const bool is_one : is_wrong) wrong += is_one ? 1 : 0;
      ASSERT_EQ(fill.CheckItem(9, static_cast<int64_t>(begin * unit), bytes), wrong)
          << ElementName(one.type) << " " << i;
    }
  }
}

TEST(ShardFillTest, ItemsPlacesAndSeedsDiffer) {
  for (const Case& one : kCases) {
    const ShardFill fill = Make(one.type, 3);
    const auto unit = static_cast<int64_t>(SizeOf(one.type));
    Bytes bytes(static_cast<size_t>(256 * unit));
    fill.FillItem(9, 0, absl::MakeSpan(bytes));
    // Nearly all elements must differ, or a mistake could pass.
    EXPECT_GT(fill.CheckItem(10, 0, bytes), 200) << ElementName(one.type);
    EXPECT_GT(fill.CheckItem(9, unit, bytes), 200) << ElementName(one.type);
    EXPECT_GT(Make(one.type, 4).CheckItem(9, 0, bytes), 200) << ElementName(one.type);
    EXPECT_GT(fill.CheckItem(9, 0, Bytes(bytes.size())), 200) << ElementName(one.type);
  }
}

TEST(ShardFillTest, SomeTypesHaveNone) {
  EXPECT_FALSE(ShardFill::Make(ElementType::kC64, 0).ok());
  EXPECT_FALSE(ShardFill::Make(ElementType::kBool, 0).ok());
}

TEST(ShardFillDeathTest, RangesDoNotCutElements) {
  const ShardFill fill = Make(ElementType::kF32, 0);
  Bytes bytes(8);
  EXPECT_DEATH(fill.FillItem(0, 2, absl::MakeSpan(bytes)), "cuts an element");
}

}  // namespace
}  // namespace sluice::bench
