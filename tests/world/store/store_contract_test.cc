// The stores that keep the contract: of one process, over TCP, and what has no more than five
// calls.
#include "world/store/store_contract.h"

#include <memory>
#include <string>
#include <utility>

#include "sluice/store.h"
#include "world/store/raw_client.h"
#include "world/store/store_tools.h"

namespace sluice {
namespace {

class MemoryRig : public StoreRig {
 public:
  std::unique_ptr<Store> Open() override { return std::make_unique<SharedStore>(store_); }

 private:
  const std::shared_ptr<Store> store_ = MakeMemoryStore();
};

class TcpRig : public StoreRig {
 public:
  explicit TcpRig(const std::string& token)
      : token_(token), server_(ServeAt("127.0.0.1", 0, token)) {}
  std::unique_ptr<Store> Open() override { return Reach(*server_, token_); }

 private:
  const std::string token_;
  const std::unique_ptr<StoreServer> server_;
};

class FiveCallsRig : public StoreRig {
 public:
  explicit FiveCallsRig(std::unique_ptr<StoreRig> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<Store> Open() override { return MakeFiveCalls(inner_->Open()); }

 private:
  const std::unique_ptr<StoreRig> inner_;
};

const StoreKind kKinds[] = {
    {"Memory", [] { return std::make_unique<MemoryRig>(); }},
    {"Tcp", [] { return std::make_unique<TcpRig>(""); }},
    {"TcpWithToken", [] { return std::make_unique<TcpRig>("a secret"); }},
    {"FiveCalls", [] { return std::make_unique<FiveCallsRig>(std::make_unique<MemoryRig>()); }},
    {"FiveCallsOverTcp",
     [] { return std::make_unique<FiveCallsRig>(std::make_unique<TcpRig>("")); }},
};

std::string NameOf(const testing::TestParamInfo<StoreKind>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::ValuesIn(kKinds), NameOf);
INSTANTIATE_TEST_SUITE_P(Stores, StoreLeaseContract, testing::ValuesIn(kKinds), NameOf);

}  // namespace
}  // namespace sluice
