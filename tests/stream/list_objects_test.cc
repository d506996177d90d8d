// Directories without an index, from one rank's listing to every rank's catalog.
#include "session/stream/list_objects.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/format/npy.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ListObjectsTest : public testing::Test {
 protected:
  ListObjectsTest() {
    std::string path = (std::filesystem::temp_directory_path() / "sluice-list-XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~ListObjectsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(absl::StrCat(path_, "/", name), std::ios::binary) << bytes;
  }
  absl::StatusOr<std::string> List(ItemFormat format) {
    source_.format = format;
    return ListObjects({"file", path_}, source_, RetryOptions(), stop_);
  }
  absl::StatusOr<Catalog> Find(ItemFormat format) {
    const absl::StatusOr<std::string> listing = List(format);
    return listing.ok() ? ReadListing(*listing, source_) : listing.status();
  }
  // An object of `header`, a JSON text, and `bytes` of tensors.
  static std::string Safetensors(const std::string& header, size_t bytes) {
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return absl::StrCat(length, header, std::string(bytes, 'x'));
  }

  std::string path_;
  StreamSource source_;
  WorkStop stop_ = false;
};

TEST_F(ListObjectsTest, RawFilesHaveNoHeaders) {
  Write("b 1\n2", std::string(12, 'b'));  // any name that a file can have
  Write("a", std::string(8, 'a'));
  source_.item_bytes = 4;
  const absl::StatusOr<Catalog> catalog = Find(ItemFormat::kRaw);
  EXPECT_TRUE(absl::IsInvalidArgument(catalog.status())) << catalog.status();
  EXPECT_THAT(std::string(catalog.status().message()), HasSubstr("b 1\\n2"));
  std::filesystem::rename(absl::StrCat(path_, "/b 1\n2"), absl::StrCat(path_, "/b 12"));
  const absl::StatusOr<Catalog> renamed = Find(ItemFormat::kRaw);
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  ASSERT_EQ(renamed->objects().size(), 2u);
  EXPECT_EQ(renamed->objects()[1].name, "b 12");
  EXPECT_EQ(renamed->objects()[1].bytes, 12);
  EXPECT_EQ(renamed->items(), 5);
}

TEST_F(ListObjectsTest, NpyHeadersOfAnyLength) {
  const std::string header = *NpyHeaderText(ElementType::kF32, {3, 2, 5}, 64);
  Write("a.npy", absl::StrCat(header, std::string(120, 'a')));
  // As long as what is read of every file at first.
  const std::string wide = *NpyHeaderText(ElementType::kU8, {2, 7}, int64_t{64} << 10);
  Write("b.npy", absl::StrCat(wide, std::string(14, 'b')));
  Write("c.txt", "no array");
  const absl::StatusOr<std::string> listing = List(ItemFormat::kNpy);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_LT(listing->size(), header.size() + wide.size() + 100);  // headers, and no items
  const absl::StatusOr<Catalog> catalog = ReadListing(*listing, source_);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_EQ(catalog->items(), 5);
  const Catalog::Item first = catalog->ItemAt(0);
  EXPECT_EQ(first.offset, static_cast<int64_t>(header.size()));
  EXPECT_EQ(first.bytes, 40);
  const Catalog::Item last = catalog->ItemAt(4);
  EXPECT_EQ(last.object, 1);
  EXPECT_EQ(last.offset, static_cast<int64_t>(wide.size()) + 7);
  EXPECT_THAT(catalog->types()[static_cast<size_t>(last.type)].shape, ElementsAre(7));
}

TEST_F(ListObjectsTest, EachItemKeepsATypeOfItsOwn) {
  Write("a.safetensors",
        Safetensors(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
                    R"( "y": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}})",
                    11));
  const absl::StatusOr<Catalog> catalog = Find(ItemFormat::kSafetensors);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  ASSERT_EQ(catalog->items(), 2);
  const auto type_of = [&](int64_t item) {
    return catalog->types()[static_cast<size_t>(catalog->ItemAt(item).type)];
  };
  EXPECT_EQ(type_of(0).element, ElementType::kF32);
  EXPECT_EQ(type_of(1).element, ElementType::kU8);
  EXPECT_THAT(type_of(1).shape, ElementsAre(3));
}

TEST_F(ListObjectsTest, WhatIsWrongNamesTheFile) {
  Write("a.npy", "not an array");
  EXPECT_THAT(std::string(Find(ItemFormat::kNpy).status().message()), HasSubstr("a.npy"));
  EXPECT_TRUE(absl::IsNotFound(Find(ItemFormat::kSafetensors).status()));
}

TEST_F(ListObjectsTest, WhatIsHiddenOrNoFileIsLeftOut) {
  Write("a", std::string(8, 'a'));
  Write(".a.swp", std::string(4, 's'));
  std::filesystem::create_directory(path_ + "/folder");
  source_.item_bytes = 4;
  const absl::StatusOr<Catalog> catalog = Find(ItemFormat::kRaw);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_EQ(catalog->items(), 2);
}

TEST_F(ListObjectsTest, ALinkThatLeadsNowhereIsNamed) {
  Write("a.npy", absl::StrCat(*NpyHeaderText(ElementType::kU8, {1, 4}, 64), "aaaa"));
  std::filesystem::create_symlink("a.npy", path_ + "/b.npy");
  EXPECT_EQ(Find(ItemFormat::kNpy)->items(), 2);
  std::filesystem::create_symlink("../gone", path_ + "/c.npy");
  const absl::Status status = Find(ItemFormat::kNpy).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"c.npy\" is a link to \"../gone\""));
}

TEST_F(ListObjectsTest, ANameThatIsNotUtf8IsRefused) {
  Write("caf\xe9", std::string(8, 'a'));
  source_.item_bytes = 4;
  const absl::Status status = Find(ItemFormat::kRaw).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("caf\\xe9"));
}

TEST_F(ListObjectsTest, AStopEndsTheList) {
  Write("a.npy", absl::StrCat(*NpyHeaderText(ElementType::kU8, {1, 4}, 64), "aaaa"));
  stop_ = true;
  for (const ItemFormat format : {ItemFormat::kNpy, ItemFormat::kRaw}) {
    const absl::Status status = List(format).status();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
}

TEST_F(ListObjectsTest, ADamagedListingIsAnError) {
  Write("a.npy", absl::StrCat(*NpyHeaderText(ElementType::kU8, {1, 4}, 64), "aaaa"));
  const absl::StatusOr<std::string> listing = List(ItemFormat::kNpy);
  ASSERT_TRUE(listing.ok()) << listing.status();
  for (size_t bytes = 1; bytes < listing->size(); ++bytes) {
    EXPECT_FALSE(ReadListing(listing->substr(0, bytes), source_).ok()) << bytes;
  }
}

}  // namespace
}  // namespace sluice
