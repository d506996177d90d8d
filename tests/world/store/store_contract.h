// The contract of Store as one abstract suite, to be instantiated for each kind.
//
// A program links store_contract.cc and store_lease_contract.cc, and says with
// INSTANTIATE_TEST_SUITE_P which stores they are for.
#ifndef SLUICE_TESTS_WORLD_STORE_STORE_CONTRACT_H_
#define SLUICE_TESTS_WORLD_STORE_STORE_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "sluice/store.h"

namespace sluice {

// One table.
class StoreRig {
 public:
  virtual ~StoreRig() = default;
  // Another store that reaches the table, as each member has one. Ends before the rig.
  virtual std::unique_ptr<Store> Open() = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreRig>()> make;
};

inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) {
  return out << kind.name;
}

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  // A wait that only ends when something is wrong.
  static constexpr absl::Duration kHang = absl::Seconds(120);

  std::unique_ptr<Store> Open() { return rig_->Open(); }

 private:
  const std::unique_ptr<StoreRig> rig_ = GetParam().make();
};

class StoreLeaseContract : public StoreContract {};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_STORE_CONTRACT_H_
