// What the fuzz targets share: their input as bytes, and checks on errors.
#ifndef SLUICE_TESTS_FUZZ_FUZZ_BYTES_H_
#define SLUICE_TESTS_FUZZ_FUZZ_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/catalog.h"
#include "tensor/check.h"
#include "tensor/utf8.h"

namespace sluice {

inline absl::Span<const std::byte> BytesOf(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline absl::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Whatever the input was, the error can be printed: it says something, and that in short.
inline void CheckError(const absl::Status& status) {
  SLUICE_CHECK(!status.message().empty(), "an error that says nothing");
  SLUICE_CHECK(status.message().size() < 2000, "an error as long as the input");
  SLUICE_CHECK(IsUtf8(status.message()), "an error that is not text");
  for (const char c : status.message()) {
    SLUICE_CHECK(static_cast<unsigned char>(c) >= 0x20, "an error with control characters");
  }
}

// All items are inside their objects. Looks at the first and the last of each run.
inline void CheckInside(const Catalog& catalog) {
  int64_t first = 0;
  for (const Catalog::Stretch& run : catalog.runs()) {
    SLUICE_CHECK(run.first_item == first, "runs with a gap");
    const int64_t last = first + catalog.CountOf(run) - 1;
    SLUICE_CHECK(last >= first, "an empty run");
    for (const int64_t i : {first, last}) {
      const Catalog::Item item = catalog.ItemAt(i);
      const Catalog::Object& object = catalog.objects()[static_cast<size_t>(item.object)];
      SLUICE_CHECK(item.offset >= 0 && item.bytes >= 0, "a negative item");
      SLUICE_CHECK(item.bytes <= catalog.largest_item_bytes(), "an item larger than the largest");
      const int64_t end = object.bytes >= 0 ? object.bytes : kObjectBytesMax;
      SLUICE_CHECK(item.offset <= end - item.bytes, "an item outside its object");
    }
    first = last + 1;
  }
  SLUICE_CHECK(first == catalog.items(), "runs that are not all items");
}

}  // namespace sluice

// Begins a fuzz target, which takes `data` of `size` bytes. libFuzzer's programs have one each, by
// the name that it wants; fuzz_tests has all.
#ifdef SLUICE_LIBFUZZER
#define SLUICE_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define SLUICE_FUZZ_TARGET(name) extern "C" int sluice_fuzz_##name(const uint8_t* data, size_t size)
#endif

#endif  // SLUICE_TESTS_FUZZ_FUZZ_BYTES_H_
