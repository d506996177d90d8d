// The contract of Source as an abstract suite, to be instantiated for each kind of source.
//
// A program links source_contract.cc, source_failure_contract.cc, source_run.cc and
// session/heap_bytes.cc and says, with INSTANTIATE_TEST_SUITE_P for SourceContract, how its
// sources are made.
#ifndef SLUICE_TESTS_STORAGE_SOURCE_CONTRACT_H_
#define SLUICE_TESTS_STORAGE_SOURCE_CONTRACT_H_

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "storage/source.h"

namespace sluice {

// What storage holds before a test begins.
struct ContractObject {
  std::string name;
  std::optional<std::string> content;  // none: storage knows no such object
};

// A source and the storage behind it, which goes after it.
struct ContractSource {
  std::shared_ptr<void> storage;
  std::unique_ptr<Source> source;
};

// A way to make a source. Unavailable: it cannot be had on this machine, and the test is skipped.
struct ContractStorage {
  std::string name;  // of letters and digits
  std::function<absl::StatusOr<ContractSource>(const std::vector<ContractObject>& objects,
                                               int in_flight_max)>
      make;
};

inline std::ostream& operator<<(std::ostream& out, const ContractStorage& storage) {
  return out << storage.name;
}

inline std::string ContractStorageName(const testing::TestParamInfo<ContractStorage>& info) {
  return info.param.name;
}

class SourceContract : public testing::TestWithParam<ContractStorage> {
 protected:
  // Makes the source over objects. False: the test is to end, failed or skipped.
  bool Make(const std::vector<ContractObject>& objects, int in_flight_max = 64);
  // The same over objects "a.bin", "b.bin", ... of these sizes.
  bool MakeOfSizes(const std::vector<int64_t>& sizes, int in_flight_max = 64);

  Source& source() { return *made_.source; }
  // Ends the source; what it read from stays.
  void EndSource() { made_.source.reset(); }
  absl::string_view Content(int object) const;
  // That part of the object.
  absl::string_view Range(int object, int64_t offset, int64_t bytes) const;

 private:
  std::vector<ContractObject> objects_;
  ContractSource made_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_SOURCE_CONTRACT_H_
