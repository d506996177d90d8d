// Asks the system, and the library's owners of facts, what this rank may do and has.
#ifndef SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_
#define SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_

#include <string>

#include "doctor/facts.h"

namespace sluice::bench {

// None of these waits for other ranks. LookAtMpi is for jobs of MPI; in programs without MPI there
// is nothing that it sees.
MpiFacts LookAtMpi();
CpuFacts LookAtCpus();
LimitFacts LookAtLimits();
// While the fabric is there.
PortFacts LookAtPorts();

// What of the wires a rank finds out alone.
WireFacts LookAtOwnWires();

// Entries of a directory that begin with `prefix`; 0 if there is none.
int CountEntries(const std::string& directory, const std::string& prefix);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_
