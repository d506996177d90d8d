// The transfers of a random job: starts runs, supplies late memory, and checks every element.
#ifndef SLUICE_TESTS_CHAOS_TRANSFERS_H_
#define SLUICE_TESTS_CHAOS_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chaos/memory_watch.h"
#include "chaos/verdict.h"
#include "nlohmann/json.hpp"
#include "oracle/brute_layout.h"
#include "sluice/session.h"

namespace sluice::chaos {

Layout LayoutOf(const nlohmann::json& json);

// One rank's part: the global indices that it owns along each tensor dimension, in local order.
struct Part {
  std::vector<oracle::IndexList> indices;  // none: the rank is not in the mesh
  int64_t contribution = 0;                // which one it holds under Partial placements
  std::vector<int64_t> shape() const;
  int64_t elements() const;
};
Part PartOf(const Layout& layout, const std::vector<int64_t>& shape, int rank);

class Transfers {
 public:
  // Lists what this rank owns, which takes memory, before anything is watched.
  Transfers(Session* session, MemoryWatch* watch, Verdict* verdict, const nlohmann::json& specs);

  // Operations of a job. False: the session has failed.
  bool Compile(const nlohmann::json& op);
  bool Start(const nlohmann::json& op);
  bool Cancel(const nlohmann::json& op);
  // Waits for all runs, whose results are checked.
  bool Finish();
  // Supplies what is due, without waiting.
  bool Advance();

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    DType src_dtype = DType::kF32;
    DType dst_dtype = DType::kF32;
    Part src;
    Part dst;
    int64_t contributions = 1;
    ReduceOp op = ReduceOp::kSum;
    int64_t below = 1;  // values
    uint64_t salt = 0;  // of the name
  };
  struct Compiled {
    TransferSpec spec;
    Transfer* transfer = nullptr;
    std::vector<Tensor> tensors;
  };
  struct Memory {
    std::vector<TensorPages> pages;
    std::vector<TensorView> views;
  };
  struct StartedRun {
    Run id;
    const Compiled* compiled = nullptr;
    uint64_t seed = 0;
    Memory src;
    Memory dst;
    bool withhold = false;
    int64_t supply_ns = 0;
    std::vector<bool> checked;
  };
  struct Due {
    int64_t at_ns;
    Run run;
    int tensor;
  };

  int64_t ValueOf(const Tensor& tensor, uint64_t seed, int64_t index, int64_t contribution) const;
  int64_t ResultOf(const Tensor& tensor, uint64_t seed, int64_t index) const;
  TensorView AddView(const Part& part, DType dtype, int64_t pad, bool transposed, Memory* memory);
  void FillSource(StartedRun* run, size_t tensor);
  void Check(StartedRun* run, size_t tensor, const char* when);
  StartedRun* Find(Run id);
  std::string Name(const StartedRun& run) const;

  Session* const session_;
  MemoryWatch* const watch_;
  Verdict* const verdict_;
  std::vector<std::unique_ptr<Compiled>> compiled_;  // by number of the spec
  std::vector<std::unique_ptr<StartedRun>> runs_;
  std::vector<Due> due_;
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_TRANSFERS_H_
