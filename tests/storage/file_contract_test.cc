// The contract of sources, for files: each engine and access, on disk and in memory.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/file/file_source.h"
#include "storage/file_storage.h"
#include "storage/source_contract.h"

namespace sluice {
namespace {

constexpr char kMemory[] = "/dev/shm";  // tmpfs

ContractStorage Storage(std::string name, FileEngine engine, FileAccess access,
                        std::string parent) {
  const auto make = [=](const std::vector<ContractObject>& objects,
                        int in_flight_max) -> absl::StatusOr<ContractSource> {
    if (!parent.empty() && !std::filesystem::is_directory(parent)) {
      return absl::UnavailableError(absl::StrCat("no ", parent));
    }
    const auto storage = std::make_shared<FileStorage>(parent);
    FileSourceOptions options;
    options.engine = engine;
    options.access = access;
    options.in_flight_max = in_flight_max;
    absl::StatusOr<std::unique_ptr<Source>> source =
        MakeFileSource(storage->directory(), storage->Write(objects), options);
    if (!source.ok()) return source.status();
    return ContractSource{.storage = storage, .source = *std::move(source)};
  };
  return {.name = std::move(name), .make = make};
}

INSTANTIATE_TEST_SUITE_P(
    File, SourceContract,
    testing::Values(Storage("UringDirect", FileEngine::kUring, FileAccess::kDirect, ""),
                    Storage("UringBuffered", FileEngine::kUring, FileAccess::kBuffered, ""),
                    Storage("UringMemory", FileEngine::kUring, FileAccess::kDirect, kMemory),
                    Storage("ThreadsDirect", FileEngine::kThreads, FileAccess::kDirect, ""),
                    Storage("ThreadsBuffered", FileEngine::kThreads, FileAccess::kBuffered, ""),
                    Storage("ThreadsMemory", FileEngine::kThreads, FileAccess::kDirect, kMemory)),
    ContractStorageName);

}  // namespace
}  // namespace sluice
