// The contract of Transport and Fabric as one abstract suite, to be instantiated for each kind.
//
// A program links transport_contract.cc and fabric_contract.cc and says, with
// INSTANTIATE_TEST_SUITE_P for both suites, in which worlds they run.
#ifndef SLUICE_TESTS_TRANSPORT_TRANSPORT_CONTRACT_H_
#define SLUICE_TESTS_TRANSPORT_TRANSPORT_CONTRACT_H_

#include <functional>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "transport/contract_rank.h"

namespace sluice {

// A way to connect ranks, and to run a script on those that this process has until all are done.
// Reports scripts that are stuck as failures.
struct ContractWorld {
  std::string name;
  std::function<void(const ContractScript& script)> run;
};

inline std::ostream& operator<<(std::ostream& out, const ContractWorld& world) {
  return out << world.name;
}

class TransportContract : public testing::TestWithParam<ContractWorld> {
 protected:
  static void Run(const ContractScript& script) { GetParam().run(script); }
};

class FabricContract : public TransportContract {};

// For transports in groups, which TransportContract is not for, and for all others.
class GroupContract : public TransportContract {};

// For transports that take folds, beside TransportContract.
class FoldContract : public TransportContract {};

// For transports that end sends between ranks which have parted, beside TransportContract.
class PartContract : public TransportContract {};

inline std::string ContractWorldName(const testing::TestParamInfo<ContractWorld>& info) {
  return info.param.name;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_TRANSPORT_CONTRACT_H_
