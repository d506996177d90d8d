// Writes the files, and looks at what comes of them.
#include "stream/shard_dir.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/format/shard_index.h"
#include "tensor/check.h"

namespace sluice::stream_test {

ShardDir::ShardDir(int64_t items, int64_t item_bytes, int64_t per_object)
    : items_(items), item_bytes_(item_bytes), per_object_(per_object) {
  Catalog catalog;
  for (int64_t object = 0; object * per_object < items; ++object) {
    const int64_t first = object * per_object;
    const int64_t count = std::min(per_object, items - first);
    std::vector<char> bytes;
    for (int64_t item = first; item < first + count; ++item) {
      for (int64_t at = 0; at < item_bytes; ++at) {
        bytes.push_back(static_cast<char>(ByteOf(item, at)));
      }
    }
    std::ofstream(FileOf(object), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    SLUICE_CHECK(
        AddRawObject(NameOf(object), count * item_bytes, item_bytes, nullptr, &catalog).ok(),
        "a raw object");
  }
  std::ofstream(path_ + "/index.json") << *ShardIndexText(ShardFormat::kRaw, catalog);
}

std::string ShardDir::NameOf(int64_t object) const {
  return absl::StrCat("shard-", absl::Dec(object, absl::kZeroPad5), ".bin");
}

std::string ShardDir::FileOf(int64_t object) const {
  return absl::StrCat(path_, "/", NameOf(object));
}

StreamOptions ShardDir::Options(const std::string& scheme) const {
  StreamOptions options;
  options.source.uri = scheme + path_;
  options.reads.budget_bytes = int64_t{4} << 20;
  options.timeout = absl::Minutes(2);
  return options;
}

void ShardDir::Expect(const TensorView& view, int64_t item) const {
  ASSERT_EQ(view.dtype, DType::kU8);
  ASSERT_EQ(view.shape, std::vector<int64_t>{item_bytes_});
  const std::byte* const data = static_cast<const std::byte*>(view.data);
  for (int64_t at = 0; at < item_bytes_; ++at) {
    ASSERT_EQ(data[at], ByteOf(item, at)) << "item " << item << ", byte " << at;
  }
}

}  // namespace sluice::stream_test
