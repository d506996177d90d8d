// Objects of a data set as they are listed, and the items that a catalog makes of them.
#include "session/stream/list_objects.h"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "session/stream/catalog_items.h"
#include "session/stream/stream_catalog.h"
#include "session/stream/stream_source.h"
#include "storage/format/npy.h"

namespace sluice {
namespace {

using testing::ElementsAre;

class ListObjectsTest : public testing::Test {
 protected:
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

  const OwnFolder folder_;
  const std::string path_ = folder_.path().string();
  StreamSource source_;
  WorkStop stop_ = false;
};

TEST_F(ListObjectsTest, RawFilesHaveNoHeaders) {
  Write("b 1\n2", std::string(12, 'b'));  // any name that a file can have
  Write("a", std::string(8, 'a'));
  source_.item_bytes = 4;
  const absl::StatusOr<Catalog> catalog = Find(ItemFormat::kRaw);
  EXPECT_THAT(catalog.status(), Fails(absl::StatusCode::kInvalidArgument, "b 1\\n2"));
  std::filesystem::rename(absl::StrCat(path_, "/b 1\n2"), absl::StrCat(path_, "/b 12"));
  const auto renamed = Find(ItemFormat::kRaw).value();
  ASSERT_EQ(renamed.objects().size(), 2u);
  EXPECT_EQ(renamed.objects()[1].name, "b 12");
  EXPECT_EQ(renamed.objects()[1].bytes, 12);
  EXPECT_EQ(renamed.items(), 5);
}

TEST_F(ListObjectsTest, NpyHeadersOfAnyLength) {
  const std::string header = *NpyHeaderText(ElementType::kF32, {3, 2, 5}, 64);
  Write("a.npy", absl::StrCat(header, std::string(120, 'a')));
  // As long as what is read of every file at first.
  const std::string wide = *NpyHeaderText(ElementType::kU8, {2, 7}, int64_t{64} << 10);
  Write("b.npy", absl::StrCat(wide, std::string(14, 'b')));
  Write("c.txt", "no array");
  const auto listing = List(ItemFormat::kNpy).value();
  EXPECT_LT(listing.size(), header.size() + wide.size() + 100);  // headers, and no items
  const auto catalog = ReadListing(listing, source_).value();
  EXPECT_EQ(catalog.items(), 5);
  const Catalog::Item first = catalog.ItemAt(0);
  EXPECT_EQ(first.offset, static_cast<int64_t>(header.size()));
  EXPECT_EQ(first.bytes, 40);
  const Catalog::Item last = catalog.ItemAt(4);
  EXPECT_EQ(last.object, 1);
  EXPECT_EQ(last.offset, static_cast<int64_t>(wide.size()) + 7);
  EXPECT_THAT(catalog.types()[static_cast<size_t>(last.type)].shape, testing::ElementsAre(7));
}

TEST_F(ListObjectsTest, FilesByTheirEndings) {
  Write("b.tar", "b");
  Write("a.tar", "aa");
  Write(".c.tar", "hidden");
  Write("a.tar.gz", "another ending");
  const SourceAddress here = {"file", path_};
  const auto list = [&](const SourceAddress& address, const std::string& suffix) {
    return ListFiles(address, suffix, OpenOptions(), RetryOptions(), stop_);
  };
  const auto tars = list(here, ".tar").value();
  ASSERT_EQ(tars.size(), 2u);
  EXPECT_EQ(tars[0].name, "a.tar");
  EXPECT_EQ(tars[0].bytes, 2);
  EXPECT_EQ(tars[1].name, "b.tar");
  EXPECT_EQ(list(here, "").value().size(), 3u);
  EXPECT_THAT(list(here, ".mds").status(), Fails(absl::StatusCode::kNotFound, "no files *.mds"));
  EXPECT_THAT(list({"http", "http://host/"}, ".tar").status(),
              Fails(absl::StatusCode::kInvalidArgument, "cannot be listed"));
}

TEST_F(ListObjectsTest, EachItemKeepsATypeOfItsOwn) {
  Write("a.safetensors",
        Safetensors(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
                    R"( "y": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}})",
                    11));
  const auto catalog = Find(ItemFormat::kSafetensors).value();
  ASSERT_EQ(catalog.items(), 2);
  const auto type_of = [&](int64_t item) {
    return catalog.types()[static_cast<size_t>(catalog.ItemAt(item).type)];
  };
  EXPECT_EQ(type_of(0).element, ElementType::kF32);
  EXPECT_EQ(type_of(1).element, ElementType::kU8);
  EXPECT_THAT(type_of(1).shape, testing::ElementsAre(3));
}

TEST_F(ListObjectsTest, WhatIsWrongNamesTheFile) {
  Write("a.npy", "not an array");
  EXPECT_THAT(std::string(Find(ItemFormat::kNpy).status().message()), testing::HasSubstr("a.npy"));
  EXPECT_TRUE(absl::IsNotFound(Find(ItemFormat::kSafetensors).status()));
}

TEST_F(ListObjectsTest, WhatIsHiddenOrNoFileIsLeftOut) {
  Write("a", std::string(8, 'a'));
  Write(".a.swp", std::string(4, 's'));
  std::filesystem::create_directory(path_ + "/folder");
  source_.item_bytes = 4;
  const auto catalog = Find(ItemFormat::kRaw).value();
  EXPECT_EQ(catalog.items(), 2);
}

TEST_F(ListObjectsTest, ALinkThatLeadsNowhereIsNamed) {
  Write("a.npy", absl::StrCat(*NpyHeaderText(ElementType::kU8, {1, 4}, 64), "aaaa"));
  std::filesystem::create_symlink("a.npy", path_ + "/b.npy");
  EXPECT_EQ(Find(ItemFormat::kNpy)->items(), 2);
  std::filesystem::create_symlink("../gone", path_ + "/c.npy");
  EXPECT_THAT(Find(ItemFormat::kNpy).status(),
              Fails(absl::StatusCode::kInvalidArgument, "\"c.npy\" is a link to \"../gone\""));
}

TEST_F(ListObjectsTest, ANameThatIsNotUtf8IsRefused) {
  Write("caf\xe9", std::string(8, 'a'));
  source_.item_bytes = 4;
  const absl::Status status = Find(ItemFormat::kRaw).status();
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "caf\\xe9"));
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
  const auto listing = List(ItemFormat::kNpy).value();
  for (size_t bytes = 1; bytes < listing.size(); ++bytes) {
    EXPECT_FALSE(ReadListing(listing.substr(0, bytes), source_).ok()) << bytes;
  }
}

TEST_F(ListObjectsTest, AnIndexIsAPlainFileOfBoundedLength) {
  const auto fetch = [this] {
    return FetchCatalogText({"file", path_}, source_, RetryOptions()).status();
  };
  EXPECT_THAT(fetch(), Fails(absl::StatusCode::kNotFound, "`sluice-bench shards` writes one"));
  const std::string index = path_ + "/index.json";
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  EXPECT_THAT(std::string(fetch().message()), testing::HasSubstr("it is no file"));
  std::filesystem::remove(index);
  Write("index.json", "{}");
  // Sparse: it is not read to find out.
  std::filesystem::resize_file(index, std::uintmax_t{1} << 40);
  EXPECT_TRUE(absl::IsResourceExhausted(fetch())) << fetch();
  source_.format = ItemFormat::kRaw;
  EXPECT_THAT(FetchCatalogText({"http", "host/"}, source_, RetryOptions()).status(),
              Fails(absl::StatusCode::kInvalidArgument, "it cannot be listed"));
}

struct Items {
  int64_t count = 1;
  int64_t offset = 0;
  int64_t bytes = 24;
  int64_t stride = 24;
  const ItemType* type = nullptr;
};

// One object "a" of 1000 bytes, with these items.
Catalog CatalogOf(const std::vector<Items>& all) {
  Catalog catalog;
  EXPECT_TRUE(catalog.AddObject("a", 1000).ok());
  for (const Items& items : all) {
    EXPECT_TRUE(
        catalog.AddItems(items.count, items.offset, items.bytes, items.stride, items.type).ok());
  }
  return catalog;
}

TEST(CatalogItemsTest, TypedItemsKeepTheirShape) {
  const ItemType matrix = {ElementType::kF32, {2, 3}};
  const ItemType scalar = {ElementType::kF64, {}};
  const CatalogItems items(
      CatalogOf({{.count = 2, .type = &matrix}, {.offset = 48, .bytes = 8, .type = &scalar}}),
      absl::nullopt);
  EXPECT_EQ(items.items(), 3);
  EXPECT_EQ(items.At(1).object, 0);
  EXPECT_EQ(items.At(1).offset, 24);
  EXPECT_EQ(items.At(1).bytes, 24);
  EXPECT_EQ(items.DTypeOf(1), DType::kF32);
  EXPECT_THAT(items.ShapeOf(1), ElementsAre(2, 3));
  EXPECT_EQ(items.DTypeOf(2), DType::kF64);
  EXPECT_THAT(items.ShapeOf(2), ElementsAre());  // a single number
  EXPECT_EQ(items.item_bytes_max(), 24);
  EXPECT_THAT(items.object_names(), ElementsAre("a"));
}

TEST(CatalogItemsTest, ItemsOfNoTypeAreBytesOrWhatTheTransformTakes) {
  const CatalogItems bytes(CatalogOf({Items()}), absl::nullopt);
  EXPECT_EQ(bytes.DTypeOf(0), DType::kU8);
  EXPECT_THAT(bytes.ShapeOf(0), ElementsAre(24));
  const CatalogItems floats(CatalogOf({Items()}), DType::kF32);
  EXPECT_EQ(floats.DTypeOf(0), DType::kF32);
  EXPECT_THAT(floats.ShapeOf(0), ElementsAre(6));
  // Of another type than the transform takes: its bytes are taken as that.
  const ItemType other = {ElementType::kF64, {3}};
  const CatalogItems taken(CatalogOf({{.type = &other}}), DType::kF32);
  EXPECT_EQ(taken.DTypeOf(0), DType::kF32);
  EXPECT_THAT(taken.ShapeOf(0), ElementsAre(6));
  const ItemType same = {ElementType::kF32, {2, 3}};
  EXPECT_THAT(CatalogItems(CatalogOf({{.type = &same}}), DType::kF32).ShapeOf(0),
              ElementsAre(2, 3));
}

TEST(CatalogItemsTest, UniformItemsAreOfOneSizeAndType) {
  const ItemType floats = {ElementType::kF32, {6}};
  const ItemType ints = {ElementType::kI32, {6}};
  const auto uniform = [](const std::vector<Items>& all) {
    return CatalogItems(CatalogOf(all), absl::nullopt).uniform();
  };
  EXPECT_TRUE(uniform({{.count = 5}, {.offset = 500}}));
  EXPECT_FALSE(uniform({{.count = 5}, {.offset = 500, .bytes = 23}}));
  EXPECT_TRUE(uniform({{.type = &floats}, {.offset = 500, .type = &floats}}));
  EXPECT_FALSE(uniform({{.type = &floats}, {.offset = 500, .type = &ints}}));
}

TEST(CatalogItemsTest, AlignedItemsAllBeginAtMultiples) {
  const auto aligned = [](const Items& items) {
    return CatalogItems(CatalogOf({items}), absl::nullopt).aligned_to(16);
  };
  EXPECT_TRUE(aligned({.count = 3, .offset = 32, .stride = 48}));
  EXPECT_FALSE(aligned({.count = 3, .offset = 32, .stride = 40}));
  EXPECT_FALSE(aligned({.count = 3, .offset = 40, .stride = 48}));
  EXPECT_TRUE(aligned({.count = 1, .offset = 32, .stride = 40}));
}

TEST(CatalogItemsTest, TheFingerprintIsOfWhereItemsLie) {
  const auto print = [](const std::vector<Items>& all) {
    return CatalogItems(CatalogOf(all), absl::nullopt).fingerprint();
  };
  const uint64_t one = print({{.count = 3}});
  EXPECT_EQ(print({{.count = 3}}), one);
  EXPECT_NE(one, 0u);
  EXPECT_NE(print({{.count = 3, .offset = 1}}), one);
  EXPECT_NE(print({{.count = 3, .stride = 25}}), one);
  EXPECT_NE(print({{.count = 3, .bytes = 23}}), one);
  Catalog longer;
  ASSERT_TRUE(longer.AddObject("a", 1001).ok());
  ASSERT_TRUE(longer.AddItems(3, 0, 24, 24).ok());
  EXPECT_NE(CatalogItems(std::move(longer), absl::nullopt).fingerprint(), one);
}

TEST(GeneratedItemsTest, LieOneBehindTheOther) {
  const GeneratedItems items(10, 24, absl::nullopt);
  EXPECT_EQ(items.items(), 10);
  EXPECT_EQ(items.At(3).offset, 72);
  EXPECT_EQ(items.At(3).bytes, 24);
  EXPECT_EQ(items.DTypeOf(3), DType::kU8);
  EXPECT_THAT(items.ShapeOf(3), ElementsAre(24));
  const GeneratedItems floats(10, 24, DType::kF32);
  EXPECT_EQ(floats.DTypeOf(3), DType::kF32);
  EXPECT_THAT(floats.ShapeOf(3), ElementsAre(6));
  EXPECT_EQ(floats.fingerprint(), items.fingerprint());
  EXPECT_NE(GeneratedItems(10, 25, absl::nullopt).fingerprint(), items.fingerprint());
  EXPECT_TRUE(items.made());
  EXPECT_FALSE(items.sized());
}

TEST(GeneratedItemsTest, OfVaryingSizeHaveRoomForTheirLength) {
  const GeneratedItems items(10, 21, absl::nullopt, true);
  EXPECT_TRUE(items.sized());
  EXPECT_FALSE(items.uniform());
  EXPECT_EQ(items.item_bytes_max(), 32);
  EXPECT_EQ(items.payload_bytes_max(), 21);
  EXPECT_EQ(items.At(3).offset, 96);
  EXPECT_EQ(items.At(3).bytes, 32);
  EXPECT_NE(GeneratedItems(10, 21, absl::nullopt).fingerprint(), items.fingerprint());
}

TEST(StreamSourceTest, ItemsOfATransformAreWholeElements) {
  StreamOptions options;
  options.buffers.transform = ItemTransform{DType::kF32, DType::kBF16};
  const auto open = [&options](Catalog catalog) {
    return OpenCatalog({"file", "/"}, options, {}, std::move(catalog), 4).status();
  };
  EXPECT_THAT(open(Catalog()), Fails(absl::StatusCode::kInvalidArgument, "has no items"));
  EXPECT_TRUE(open(CatalogOf({Items()})).ok());
  const std::string text = "items of 6 bytes of a do not hold whole elements of f32";
  EXPECT_THAT(open(CatalogOf({{.bytes = 6}})), Fails(absl::StatusCode::kInvalidArgument, text));
}

TEST(StreamSourceTest, GeneratorsMakeWhatCanBeCounted) {
  StreamOptions options;
  const auto expect = [&options](const std::string& text) {
    EXPECT_THAT(OpenGenerator(options, {}).status(),
                Fails(absl::StatusCode::kInvalidArgument, text));
  };
  expect("a source needs a uri, or a generator");
  options.source.item_bytes = 6;
  options.source.generator_items = 100;
  options.source.generator = [](int64_t, absl::Span<std::byte>) { return absl::OkStatus(); };
  const auto opened = OpenGenerator(options, {}).value();
  EXPECT_EQ(opened.items->items(), 100);
  EXPECT_NE(opened.generator, nullptr);
  EXPECT_TRUE(opened.whole_items);
  options.buffers.transform = ItemTransform{DType::kF32, DType::kBF16};
  expect("items of 6 bytes do not hold whole elements of f32");
  options.source.generator_items = int64_t{1} << 61;
  expect("bytes are too many");
  options.source.generator_items = 1;
  options.source.item_bytes = INT64_MAX;
  expect("bytes are too many");
}

}  // namespace
}  // namespace sluice
