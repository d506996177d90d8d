// The checkpoints of a random job: saves tensors, loads them into other layouts, checks them.
#ifndef SLUICE_TESTS_CHAOS_CHECKPOINTS_H_
#define SLUICE_TESTS_CHAOS_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "chaos/memory_watch.h"
#include "chaos/transfers.h"
#include "chaos/verdict.h"
#include "nlohmann/json.hpp"
#include "sluice/checkpoint.h"
#include "sluice/session.h"

namespace sluice::chaos {

class Checkpoints {
 public:
  // Lists what this rank owns, which takes memory, before anything is watched.
  Checkpoints(Session* session, MemoryWatch* watch, Verdict* verdict, const nlohmann::json& specs,
              std::string folder);

  // Operations of a job. False: the session has failed.
  bool Save(const nlohmann::json& op);
  // The tensors must be those of one of op's seeds, all of the same one.
  bool Load(const nlohmann::json& op);

 private:
  struct Tensors {
    std::vector<CheckpointTensor> list;
    std::vector<TensorPages> pages;
  };
  using Parts = std::vector<Part>;  // of the tensors of a checkpoint
  Parts PartsOf(const nlohmann::json& spec, const char* layout) const;
  Tensors MakeTensors(const nlohmann::json& spec, const char* layout, const Parts& parts);
  TensorPages Contents(const CheckpointTensor& tensor, const Part& part, uint64_t seed) const;
  CheckpointOptions OptionsOf(const nlohmann::json& op) const;

  Session* const session_;
  MemoryWatch* const watch_;
  Verdict* const verdict_;
  const nlohmann::json& specs_;
  const std::string folder_;
  std::vector<Parts> saved_;  // by number of the spec
  std::vector<Parts> loaded_;
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_CHECKPOINTS_H_
