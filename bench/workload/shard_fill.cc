// Making and comparing items at the speed of memory.
#include "workload/shard_fill.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "workload/element.h"

namespace sluice::bench {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kItemStep = 2654435761;
constexpr uint32_t kElementStep = 40503;
constexpr uint64_t kItemWord = 0x9E3779B97F4A7C15;
constexpr uint64_t kPlaceWord = 0xD1B54A32D192ED03;
constexpr size_t kWordBytes = 8;

// 0 if the type has no fill. All are primes that do not divide kElementStep.
uint32_t ModulusOf(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return 1;
    case ElementType::kI8:
    case ElementType::kI16:
      return 127;
    case ElementType::kBF16:
      return 251;
    case ElementType::kF16:
      return 2039;
    case ElementType::kI32:
    case ElementType::kI64:
    case ElementType::kF32:
    case ElementType::kF64:
      return 65521;
    default:
      return 0;
  }
}

void PutNumber(ElementType type, uint32_t number, std::byte* out) {
  WithCodec(*DTypeOf(type), [&](auto codec) {
    const auto unit = codec.Store(static_cast<typename decltype(codec)::Wide>(number));
    std::memcpy(out, &unit, sizeof(unit));
  });
}

uint64_t WordAt(int64_t item, uint64_t seed, uint64_t place) {
  return (static_cast<uint64_t>(item) + 1 + seed) * kItemWord + (place + 1) * kPlaceWord;
}

// The first bytes of a range that does not begin with a whole word: how many, and which.
struct Lead {
  size_t bytes;
  uint64_t word;  // its low bytes are they
};

Lead LeadOf(int64_t item, uint64_t seed, int64_t offset, size_t bytes) {
  const auto within = static_cast<size_t>(offset) % kWordBytes;
  if (within == 0) return {0, 0};
  const uint64_t word = WordAt(item, seed, static_cast<uint64_t>(offset) / kWordBytes);
  return {std::min(bytes, kWordBytes - within), word >> (8 * within)};
}

void FillWords(uint64_t word, std::byte* out, size_t words) {
  for (size_t j = 0; j < words; ++j) {
    std::memcpy(out + j * kWordBytes, &word, kWordBytes);
    word += kPlaceWord;
  }
}

int64_t WrongBytes(uint64_t found, uint64_t wanted, size_t bytes) {
  uint64_t difference = found ^ wanted;
  int64_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i, difference >>= 8) wrong += (difference & 0xFF) != 0 ? 1 : 0;
  return wrong;
}

uint64_t LoadWord(const std::byte* bytes, size_t count = kWordBytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

bool WordsAreRight(uint64_t word, const std::byte* bytes, size_t words) {
  uint64_t difference = 0;
  for (size_t j = 0; j < words; ++j) {
    uint64_t found;
    std::memcpy(&found, bytes + j * kWordBytes, kWordBytes);
    difference |= found ^ word;
    word += kPlaceWord;
  }
  return difference == 0;
}

int64_t WrongInWords(uint64_t word, const std::byte* bytes, size_t words) {
  constexpr size_t kBlock = 256;
  int64_t wrong = 0;
  for (size_t begin = 0; begin < words; begin += kBlock) {
    const size_t end = std::min(words, begin + kBlock);
    const uint64_t first = word + begin * kPlaceWord;
    if (WordsAreRight(first, bytes + begin * kWordBytes, end - begin)) continue;
    for (size_t j = begin; j < end; ++j) {
      wrong += WrongBytes(LoadWord(bytes + j * kWordBytes), word + j * kPlaceWord, kWordBytes);
    }
  }
  return wrong;
}

}  // namespace

absl::StatusOr<ShardFill> ShardFill::Make(ElementType type, uint64_t seed) {
  const uint32_t modulus = ModulusOf(type);
  if (modulus == 0) {
    return absl::InvalidArgumentError(absl::StrCat("there is no fill of ", ElementName(type)));
  }
  return ShardFill(type, seed, modulus);
}

ShardFill::ShardFill(ElementType type, uint64_t seed, uint32_t modulus)
    : type_(type),
      seed_(seed),
      element_bytes_(static_cast<size_t>(ElementBytes(type))),
      modulus_(modulus) {
  if (type == ElementType::kU8) return;
  // Short periods are repeated, so that pieces are worth a call of memcpy.
  constexpr size_t kPieceElements = 16384;
  table_elements_ = modulus + std::max<size_t>(modulus, kPieceElements);
  table_.resize(table_elements_ * element_bytes_);
  for (size_t k = 0; k < table_elements_; ++k) {
    const auto number = static_cast<uint32_t>(k * kElementStep % modulus);
    if (number == 1 && k < modulus) place_of_one_ = static_cast<uint32_t>(k);
    PutNumber(type, number, &table_[k * element_bytes_]);
  }
}

uint32_t ShardFill::Value(int64_t item, int64_t e) const {
  if (type_ == ElementType::kU8) {
    const auto byte = static_cast<uint64_t>(e);
    return WordAt(item, seed_, byte / kWordBytes) >> (8 * (byte % kWordBytes)) & 0xFF;
  }
  const uint32_t sum = static_cast<uint32_t>(item) * kItemStep +
                       static_cast<uint32_t>(e) * kElementStep + static_cast<uint32_t>(seed_);
  return sum % modulus_;
}

template <typename Visit>
void ShardFill::ForEachPiece(int64_t item, int64_t offset, size_t bytes, Visit visit) const {
  SLUICE_CHECK(static_cast<size_t>(offset) % element_bytes_ == 0 && bytes % element_bytes_ == 0,
               "a range that cuts an element");
  const auto first = static_cast<uint32_t>(static_cast<size_t>(offset) / element_bytes_);
  uint32_t sum =
      static_cast<uint32_t>(item) * kItemStep + first * kElementStep + static_cast<uint32_t>(seed_);
  const size_t elements = bytes / element_bytes_;
  for (size_t done = 0; done < elements;) {
    const size_t place = uint64_t{sum % modulus_} * place_of_one_ % modulus_;
    const size_t to_overflow = (UINT32_MAX - sum) / kElementStep + 1;
    const size_t count = std::min({elements - done, to_overflow, table_elements_ - place});
    visit(&table_[place * element_bytes_], done * element_bytes_, count * element_bytes_);
    sum += static_cast<uint32_t>(count) * kElementStep;
    done += count;
  }
}

void ShardFill::FillItem(int64_t item, int64_t offset, absl::Span<std::byte> out) const {
  SLUICE_CHECK(item >= 0 && offset >= 0, "a negative item or offset");
  if (type_ != ElementType::kU8) {
    ForEachPiece(item, offset, out.size(), [&](const std::byte* right, size_t at, size_t bytes) {
      std::memcpy(out.data() + at, right, bytes);
    });
    return;
  }
  const Lead lead = LeadOf(item, seed_, offset, out.size());
  std::memcpy(out.data(), &lead.word, lead.bytes);
  out.remove_prefix(lead.bytes);
  const size_t words = out.size() / kWordBytes;
  const auto place = static_cast<uint64_t>(offset) + lead.bytes;
  const uint64_t word = WordAt(item, seed_, place / kWordBytes);
  FillWords(word, out.data(), words);
  out.remove_prefix(words * kWordBytes);
  const uint64_t last = word + words * kPlaceWord;
  std::memcpy(out.data(), &last, out.size());
}

int64_t ShardFill::CheckItem(int64_t item, int64_t offset,
                             absl::Span<const std::byte> bytes) const {
  SLUICE_CHECK(item >= 0 && offset >= 0, "a negative item or offset");
  int64_t wrong = 0;
  if (type_ != ElementType::kU8) {
    ForEachPiece(item, offset, bytes.size(), [&](const std::byte* right, size_t at, size_t size) {
      const std::byte* found = bytes.data() + at;
      if (std::memcmp(found, right, size) == 0) return;
      for (size_t i = 0; i < size; i += element_bytes_) {
        wrong += std::memcmp(found + i, right + i, element_bytes_) != 0 ? 1 : 0;
      }
    });
    return wrong;
  }
  const Lead lead = LeadOf(item, seed_, offset, bytes.size());
  wrong += WrongBytes(LoadWord(bytes.data(), lead.bytes), lead.word, lead.bytes);
  bytes.remove_prefix(lead.bytes);
  const size_t words = bytes.size() / kWordBytes;
  const auto place = static_cast<uint64_t>(offset) + lead.bytes;
  const uint64_t word = WordAt(item, seed_, place / kWordBytes);
  wrong += WrongInWords(word, bytes.data(), words);
  bytes.remove_prefix(words * kWordBytes);
  const uint64_t last = word + words * kPlaceWord;
  return wrong + WrongBytes(LoadWord(bytes.data(), bytes.size()), last, bytes.size());
}

}  // namespace sluice::bench
