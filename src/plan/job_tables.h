// Tables that all ranks of a job have in common in planning a transfer.
#ifndef SLUICE_SRC_PLAN_JOB_TABLES_H_
#define SLUICE_SRC_PLAN_JOB_TABLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/class_tables.h"
#include "plan/plan.h"
#include "plan/positions.h"
#include "sluice/transfer.h"

namespace sluice {

struct JobTables {
  struct Tensor {
    size_t class_number = 0;
    int64_t rotation = 0;    // of its replicas
    int64_t wire_bytes = 1;  // of an element
    int64_t src_bytes = 1;
  };

  // Both arguments' content must outlive this object.
  JobTables(const TransferSpec& of, const PlanOptions& how);

  const TransferSpec& spec;
  const PlanOptions options;
  absl::Status status;                                // not OK: there are no plans
  Positions sources;                                  // of the ranks that any tensor comes from
  Positions targets;                                  // of those that any goes to
  std::vector<Tensor> tensors;                        // parallel to the spec's
  std::vector<std::unique_ptr<ClassTables>> classes;  // filled as ranks ask
};

// The plan of one rank. Fills the tables with what the plan needs of them.
absl::StatusOr<Plan> PlanOneRank(JobTables* tables, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_JOB_TABLES_H_
