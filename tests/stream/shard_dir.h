// A directory of raw shards with an index, whose bytes anyone can check.
#ifndef SLUICE_TESTS_STREAM_SHARD_DIR_H_
#define SLUICE_TESTS_STREAM_SHARD_DIR_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "main/own_folder.h"
#include "sluice/stream.h"

namespace sluice::stream_test {

class ShardDir {
 public:
  // `items` of `item_bytes`, `per_object` in each file.
  ShardDir(int64_t items, int64_t item_bytes, int64_t per_object);

  int64_t items() const { return items_; }
  int64_t item_bytes() const { return item_bytes_; }
  const std::string& path() const { return path_; }
  std::string FileOf(int64_t object) const;
  std::string NameOf(int64_t object) const;

  // A stream of it, read through the page cache, or by another scheme.
  StreamOptions Options(const std::string& scheme = "buffered:") const;

  // Byte `at` of an item.
  static std::byte ByteOf(int64_t item, int64_t at) {
    return static_cast<std::byte>((item * 131 + at * 7 + at / 251) & 0xFF);
  }
  // Fails the test unless the view is the item, whole.
  void Expect(const TensorView& view, int64_t item) const;

 private:
  const OwnFolder folder_;
  const std::string path_ = folder_.path().string();
  const int64_t items_;
  const int64_t item_bytes_;
  const int64_t per_object_;
};

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_SHARD_DIR_H_
