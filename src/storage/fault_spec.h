// The faults that a decorated source makes up, and the words for them on a command line.
#ifndef SLUICE_SRC_STORAGE_FAULT_SPEC_H_
#define SLUICE_SRC_STORAGE_FAULT_SPEC_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Probabilities, from 0 to 1. An item that is permanently faulty or short is so at every attempt;
// whether an attempt fails in passing or hangs is drawn for each.
struct FaultSpec {
  double transient = 0;        // Unavailable
  int transient_attempts = 1;  // only this many attempts of an item can fail so
  double permanent = 0;        // FailedPrecondition
  double short_object = 0;     // DataLoss, as if the object ended before
  double hang = 0;             // no event until Cancel

  bool any() const { return transient > 0 || permanent > 0 || short_object > 0 || hang > 0; }
};

// Reads "transient:0.01,permanent:0.001,short:0.001,hang:0.001", any of them, in any order, each
// once; "transient:0.01x3" lets the first three attempts fail. Empty: no faults. InvalidArgument
// for anything else, and for probabilities that do not fit into 1 together: permanent and short,
// transient and hang.
absl::StatusOr<FaultSpec> ParseFaultSpec(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FAULT_SPEC_H_
